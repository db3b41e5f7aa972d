"""SoftLexicon on the runtime against PyTorch, in NumPy and at every level."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
import torch
from flat_variants import TEXTS
from runtime_forms import FORMS

from cige.api import NER
from cige.models.model import LatticeModel
from cige.models.soft_lexicon import SoftLexiconConfig
from cige.runtime.native_model import NativeModel
from cige.tagging.prediction import predict_spans

VARIANTS: dict[str, dict] = {
    "paper": {},
    "smoothed": {"weighting": "smoothed", "smoothing": 0.5},
    "not smoothed at all": {"weighting": "smoothed", "smoothing": 0.0},
    "no words": {"use_words": False},
    "bigrams": {"use_bigrams": True, "bigram_backoff": True},
    "two layers": {"n_layers": 2},
    "components": {"components": tiny.COMPONENTS},
    "components and bigrams": {"components": tiny.COMPONENTS, "use_bigrams": True, "bigram_backoff": True},
    "odd width": {"lstm_width": 38, "n_layers": 2},
}
LONG = "".join(s.text for s in tiny.sentences(9, seed=3))


def made(**changes: object) -> LatticeModel:
    config = SoftLexiconConfig(**{"lstm_width": 32, **changes})
    model = tiny.model(config=config, architecture="soft_lexicon", seed=4)
    torch.manual_seed(1)
    for parameter in model.tagger.crf.parameters():
        parameter.data += torch.randn_like(parameter)
    model.tagger.output.weight.data *= 6
    model.lexicon.add("轩辕", "澜沧江", "轩辕澜沧江渊瀚海说话", "南京")
    return model


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
def test_every_form_computes_what_pytorch_does(tmp_path, changes):
    model = made(**changes)
    model.save(tmp_path / "model", table_dtype="int8")
    model = LatticeModel.load(tmp_path / "model")
    for form in FORMS:
        other = NativeModel.load(tmp_path / "model", kernels=form)
        for texts in (TEXTS, TEXTS[:1], TEXTS[1:2], TEXTS[3:4], [LONG, *TEXTS], ["", *TEXTS[:1] * 3]):
            lattices = model.lattices(texts)
            (emissions, shares), (own, read) = model.read_words(lattices), other.read_words(lattices)
            assert own.shape == emissions.shape and own.dtype == read.dtype == np.float32
            np.testing.assert_array_equal(other.emissions(lattices), own)
            for row, lattice in enumerate(lattices):
                part, of_words = (row, slice(lattice.n_chars)), (row, slice(lattice.n_chars), slice(lattice.n_words))
                np.testing.assert_allclose(own[part], emissions[part], atol=5e-5, err_msg=form)
                np.testing.assert_allclose(read[of_words], shares[of_words], atol=1e-5, err_msg=form)
        lattices = model.lattices([LONG, *TEXTS])
        found, expected = predict_spans(other, lattices), predict_spans(model, lattices)
        assert [[(s.start, s.end, s.label) for s in x] for x in found] == [
            [(s.start, s.end, s.label) for s in x] for x in expected
        ]
        scores = [[s.score for of_one in x for s in of_one] for x in (found, expected)]
        np.testing.assert_allclose(*scores, atol=1e-4)


def test_an_explanation_lists_the_word_sets_that_pytorch_does(tmp_path):
    model = made()
    model.save(tmp_path / "model")
    own, theirs = NER(NativeModel.load(tmp_path / "model")), NER(model)
    own.lexicon.add("人和药")
    theirs.lexicon.add("人和药")
    found, expected = own.explain(TEXTS[2]).to_dict(), theirs.explain(TEXTS[2]).to_dict()
    assert found["word_sets"] == expected["word_sets"] and any("人和药" in str(x) for x in found["word_sets"])
    assert found["words"] == expected["words"]


@pytest.mark.parametrize("form", FORMS)
def test_gates_that_are_wide_open_or_shut(tmp_path, form):
    """Sigmoid and tanh far from 0, where an exponential would overflow."""
    model = made()
    for name, parameter in model.tagger.encoder.lstm.named_parameters():
        if "weight" in name:
            parameter.data *= 200
    model.save(tmp_path / "model")
    lattices = model.lattices(TEXTS[:1])
    own = NativeModel.load(tmp_path / "model", kernels=form).emissions(lattices)
    np.testing.assert_allclose(own, model.emissions(lattices), atol=1e-3)


@pytest.mark.skipif(len(FORMS) == 1, reason="nothing was compiled")
def test_the_lstm_has_as_many_threads_as_were_asked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    model = made()
    model.save(tmp_path / "model")
    for asked, expected in ((1, 1), (3, 3), (None, 2)):
        own, used = NativeModel.load(tmp_path / "model", n_threads=asked), []
        library = own.chain.library
        with monkeypatch.context() as patched:
            compute = library.lstm_layer
            patched.setattr(
                library,
                "lstm_layer",
                lambda layer, run, of=compute, to=used: to.append(run.n_threads) or of(layer, run),
            )
            own.emissions(model.lattices(TEXTS))
        assert used == [expected]
