"""The mean of trained models has the mean of their weights, and models that do not fit are refused."""

from dataclasses import replace

import numpy as np
import pytest
import tiny
import torch

import cige
from cige.cli import main as run_cige
from cige.entities.calibration import Calibration
from cige.entities.label_facts import LabelFacts
from cige.errors import ModelError
from cige.lexicon.lexicon import Lexicon
from cige.models.mean import mean_model
from cige.models.model import LatticeModel
from cige.models.trim import rename_labels

TEXTS = [s.text for s in tiny.sentences(6, seed=4)]


def moved(model: LatticeModel, by: float) -> LatticeModel:
    """The model with `by` times random numbers added to all weights, always the same ones."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for p in model.tagger.parameters():
            p.add_(by * torch.randn(p.shape, generator=generator))
    return model


def test_the_mean_of_models_at_equal_distances_is_the_model_between_them():
    middle = tiny.trained_model()
    mean = mean_model([moved(tiny.trained_model(), 0.3), moved(tiny.trained_model(), -0.3)])
    for name, value in mean.tagger.state_dict().items():
        torch.testing.assert_close(value, middle.tagger.state_dict()[name], atol=1e-5, rtol=1e-4)
    with torch.no_grad():
        expected, own = (m.tagger.eval()(m.encode(TEXTS)[0]).emissions for m in (middle, mean))
    torch.testing.assert_close(own, expected, atol=1e-3, rtol=1e-3)


def test_each_model_counts_alike():
    models = [moved(tiny.trained_model(), by) for by in (0.0, 0.0, 0.3)]
    weight = "output.weight"
    expected = torch.stack([m.tagger.state_dict()[weight] for m in models]).mean(0)
    torch.testing.assert_close(mean_model(models).tagger.state_dict()[weight], expected)


def test_the_mean_has_no_calibration_and_names_what_it_was_made_of():
    facts = LabelFacts(calibration={"fine": Calibration(((0.0, 0.1), (1.0, 0.9)))}, max_lengths={"LOC": 9})
    models = [replace(tiny.trained_model(), label_facts=facts, facts={"seed": seed, "dev_f1": 0.8}) for seed in (1, 2)]
    mean = mean_model(models)
    assert not mean.label_facts.calibration and mean.label_facts.max_lengths == {"LOC": 9}
    assert mean.facts == {"seed": 1, "mean_of": [{"seed": 1, "dev_f1": 0.8}, {"seed": 2, "dev_f1": 0.8}]}


def test_models_that_differ_in_more_than_weights_are_refused():
    one = tiny.trained_model()
    with pytest.raises(ModelError, match="two models or more, 1 given"):
        mean_model([one])
    with pytest.raises(ModelError, match="model 2 differs from the first in its tags"):
        mean_model([one, rename_labels(tiny.trained_model(), {"PER": "NAME"})])
    with pytest.raises(ModelError, match="model 3 differs from the first in its words"):
        mean_model([one, one, replace(tiny.trained_model(), lexicon=Lexicon.from_words(["北京"]))])
    vocabulary = replace(one.vocabulary, word_rows=one.vocabulary.word_rows[:-1])
    with pytest.raises(ModelError, match="rows of characters, bigrams and words"):
        mean_model([one, replace(one, vocabulary=vocabulary)])
    numbers = np.ones(len(one.lexicon), np.int32)
    for name, difference in (("word_counts", "counts of words"), ("word_groups", "gazetteers of words")):
        with_numbers, other = (replace(one.vocabulary, **{name: of_words}) for of_words in (numbers, 2 * numbers))
        for vocabulary in (one.vocabulary, other):
            with pytest.raises(ModelError, match=f"model 2 differs from the first in its {difference}"):
                mean_model([replace(one, vocabulary=with_numbers), replace(one, vocabulary=vocabulary)])
    with pytest.raises(ModelError, match="architecture"):
        mean_model([one, replace(one, architecture="tener")])


def test_the_command_writes_a_model_that_can_be_loaded(tmp_path, capsys):
    for name, by in (("a", 0.1), ("b", -0.1)):
        moved(tiny.trained_model(), by).save(tmp_path / name)
    out = tmp_path / "mean"
    assert run_cige(["average", str(tmp_path / "a"), str(tmp_path / "b"), "--output", str(out)]) == 0
    assert "the mean of 2 models" in capsys.readouterr().out
    assert run_cige(["average", str(tmp_path / "a"), str(out), "--output", f"{tmp_path}/./a"]) == 2
    assert "one of the models to average" in capsys.readouterr().err
    tiny.trained_model().save(tmp_path / "middle")
    expected, own = (cige.load(folder, precision="float32") for folder in (tmp_path / "middle", out))
    for text in TEXTS:
        assert [(e.start, e.end, e.label) for e in own(text)] == [(e.start, e.end, e.label) for e in expected(text)]


def test_compact_models_are_refused(tmp_path):
    tiny.trained_model().save(tmp_path / "small", table_dtype="int8")
    small = LatticeModel.load(tmp_path / "small")
    with pytest.raises(ModelError, match="before `cige compact`"):
        mean_model([small, small])
