"""LEBERT: what its BERT computes without words, the user's words, settings, long texts, threads and model folders."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
import tiny
import torch
from tiny_bert import write_bert

import cige
from cige.data.batch import LatticeBatch
from cige.errors import ModelError, RecipeError
from cige.models.bert_crf import BertCrfConfig
from cige.models.lebert import RELEASED, LebertConfig, LebertEncoder
from cige.models.model import LatticeModel
from cige.nn.bert import BertFeatures
from cige.nn.embeddings import InputSizes
from cige.training.recipe import recipe_from_dict

TEXTS = ["李明在北京市长江大桥。", "", "重庆人和药店", "罕见"]


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bert(tmp_path_factory.mktemp("bert") / "tiny", n_layers=2)


def made(bert: Path, **settings: object) -> LatticeModel:
    config = replace(LebertConfig(bert=str(bert)), **settings)
    features = BertFeatures.load(bert, tuned=config.bert_tuned)
    model = tiny.model(config=config, architecture="lebert", features=features)
    if model.tagger.encoder.adapter is not None:
        torch.manual_seed(1)
        with torch.no_grad():
            for weight in model.tagger.encoder.adapter.parameters():
                weight.normal_(std=0.5)
    return model


def emissions(model: LatticeModel, texts: list[str] = TEXTS) -> torch.Tensor:
    return tiny.emissions(model, texts)


def bert_crf_of(model: LatticeModel, bert: Path) -> LatticeModel:
    """BERT-CRF with the weights of a LEBERT but those of its adapter."""
    config = BertCrfConfig(bert=str(bert))
    plain = tiny.model(config=config, architecture="bert_crf", features=BertFeatures.load(bert, tuned=True))
    weights = model.tagger.state_dict()
    left_out = ("encoder.adapter.", "encoder.embeddings.")
    plain.tagger.load_state_dict({k: v for k, v in weights.items() if not k.startswith(left_out)})
    return plain


def test_without_words_it_is_bert_crf(bert):
    model = made(bert, use_words=False)
    own = {name for name, _ in model.tagger.named_parameters() if "features" not in name}
    assert own == {"output.weight", "output.bias", "crf.transitions", "crf.start", "crf.end"}
    torch.testing.assert_close(emissions(model), emissions(bert_crf_of(model, bert)), atol=1e-6, rtol=0)


def test_an_adapter_that_adds_nothing_leaves_the_bert_as_it_is(bert):
    model = made(bert, residual="plain")
    plain = emissions(bert_crf_of(model, bert))
    assert not torch.allclose(emissions(model), plain, atol=1e-3)
    torch.testing.assert_close(
        emissions(model, ["罕见"]), emissions(bert_crf_of(model, bert), ["罕见"]), atol=1e-6, rtol=0
    )
    with torch.no_grad():
        model.tagger.encoder.adapter.word_out.weight.zero_()
        model.tagger.encoder.adapter.word_out.bias.zero_()
    torch.testing.assert_close(emissions(model), plain, atol=1e-6, rtol=0)


def test_each_switch_changes_what_is_read(bert):
    expected = emissions(made(bert))
    changes = [{"after_layer": 2}, {"max_words": 1}, {"no_word": "vector"}, {"residual": "plain"}]
    for change in changes:
        assert not torch.allclose(emissions(made(bert, **change)), expected, atol=1e-3), change
    model, left = made(bert, max_words=1), made(bert, max_words=1, word_choice="left")
    left.tagger.load_state_dict(model.tagger.state_dict())
    assert not torch.allclose(emissions(left), emissions(model), atol=1e-3)
    torch.testing.assert_close(emissions(made(bert, max_words=5, word_choice="left")), expected)  # nothing is left out


def test_a_users_word_comes_first_but_not_from_left(bert):
    """With room for one word, a character reads the user's; from left, it may be left out."""
    for choice, is_read in (("longest", True), ("left", False)):
        model = made(bert, max_words=1, word_choice=choice)
        before = emissions(model, ["长江大桥"])
        model.lexicon.add("江大桥")
        assert torch.allclose(emissions(model, ["长江大桥"]), before, atol=1e-6) != is_read
        batch, (lattice,) = model.encode(["长江大桥"])
        with torch.no_grad():
            _, shares = model.tagger.encoder.read_words(batch)
        (row,) = lattice.is_user.nonzero()[0].tolist()
        assert shares[0, :, row].tolist() == pytest.approx([0, 1, 1, 1] if is_read else [0, 0, 0, 0])


def test_users_words_in_prediction(bert, tmp_path):
    """Through the public interface: words of one call change what that call reads, and no other."""
    made(bert).save(tmp_path / "model")
    ner = cige.load(tmp_path / "model", device="cpu")
    text = "请罕见名字说话"
    before = ner.model.emissions(ner.model.lattices([text]))
    ner.lexicon.add("罕见名字")
    assert abs(ner.model.emissions(ner.model.lattices([text])) - before).max() > 1e-4
    ner.lexicon.remove("罕见名字")
    assert abs(ner.model.emissions(ner.model.lattices([text])) - before).max() < 1e-6
    drawn = [ner.explain(text, maps=True, removals=False, words=words).maps[-1] for words in (["罕见名字"], [])]
    assert drawn[0].name == "read from words" and "罕见名字" in drawn[0].columns and "罕见名字" not in drawn[1].columns
    assert drawn[0].heads[0, :, drawn[0].columns.index("罕见名字")].tolist() == [0, 1, 1, 1, 1, 0, 0]


@pytest.mark.parametrize("tuned", [True, False])
@pytest.mark.parametrize("settings", [{}, RELEASED, {"after_layer": 2}], ids=str)
def test_training_reaches_the_adapter_through_a_fixed_bert(bert, tuned, settings):
    model = made(bert, bert_tuned=tuned, **settings)
    model.tagger.train()
    batch: LatticeBatch = model.encode(TEXTS)[0]
    model.tagger(batch).emissions.square().mean().backward()
    gradients = [w.grad for w in model.tagger.encoder.features.parameters()]
    assert all((g is not None) == tuned for g in gradients)
    for name, weight in model.tagger.encoder.adapter.named_parameters():
        assert weight.grad is not None and weight.grad.abs().max() > 0, name
    assert model.tagger.encoder.embeddings.word.tuned.grad.abs().max() > 0


def test_saved_and_loaded(bert, tmp_path):
    model = made(bert, no_word="vector", after_layer=2)
    with torch.no_grad():
        for weight in model.tagger.encoder.features.parameters():
            weight.mul_(1.1)
    model.save(tmp_path / "model")
    again = LatticeModel.load(tmp_path / "model")
    assert again.config == model.config
    torch.testing.assert_close(emissions(again), emissions(model), atol=1e-6, rtol=0)


def test_several_threads_read_at_once(bert):
    """Each with words of its own: the change of one forward pass is never made to another."""
    models = [made(bert), made(bert, after_layer=2)]
    shared = BertFeatures.load(bert, tuned=True).eval()
    for model in models:
        model.tagger.encoder.features = shared
    texts = ["李明在北京市长江大桥。", "中国银行的经理来自清华大学"]
    expected = {(k, text): emissions(model, [text]) for k, model in enumerate(models) for text in texts}
    wrong: list[object] = []

    def read(k: int, text: str) -> None:
        for _ in range(30):
            if not torch.allclose(emissions(models[k], [text]), expected[k, text], atol=1e-5):
                wrong.append((k, text))

    threads = [threading.Thread(target=read, args=one) for one in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_error_in_a_forward_pass_leaves_nothing_behind(bert):
    model = made(bert)
    features = model.tagger.encoder.features
    batch, _ = model.encode(TEXTS)
    with torch.no_grad():
        expected = features(batch)
        broken = model.tagger.encoder.adapter.norm
        model.tagger.encoder.adapter.norm = torch.nn.LayerNorm(3)
        with pytest.raises(RuntimeError):
            model.tagger(batch)
        model.tagger.encoder.adapter.norm = broken
        assert torch.equal(features(batch), expected)


def test_settings_that_are_refused(bert):
    values = {"data": {"dataset": "weibo"}, "architecture": "lebert", "name": "x"}
    with pytest.raises(RecipeError, match=r"model\.bert names no BERT"):
        recipe_from_dict(values)
    with pytest.raises(RecipeError, match=r"model\.use_bigrams is true"):
        recipe_from_dict(values | {"model": {"bert": "x", "use_bigrams": True}})
    with pytest.raises(RecipeError, match=r"model\.max_words is 0, expected at least 1"):
        recipe_from_dict(values | {"model": {"bert": "x", "max_words": 0}})
    with pytest.raises(ModelError, match=r"model\.after_layer is 3, but .* has 2 layers; expected from 1 to 2"):
        made(bert, after_layer=3)
    features = BertFeatures.load(bert, tuned=True)
    features.n_layers = 0  # as of an encoder of another form
    with pytest.raises(ModelError, match=r"model\.bert is .*, between whose layers no words can be read"):
        tiny.model(config=LebertConfig(bert=str(bert)), architecture="lebert", features=features)
    sizes = InputSizes(n_rows=(3, 3, 3), n_tuned=(3, 3, 3), widths=(4, 4, 4))
    with pytest.raises(ValueError, match="names no BERT"):
        LebertEncoder(config=LebertConfig(), sizes=sizes)
