"""A Lattice-BERT under the taggers, in place of a BERT: alone, by recipe, from a model folder and in `cige predict`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import tiny
import tiny_lattice_bert
import tiny_run
import tiny_tasks
import torch

from cige.cli import main
from cige.data.batch import LatticeBatch
from cige.engine.optimizer import make_optimizer
from cige.errors import ModelError
from cige.lattice_bert.encoder.pretrained import LatticeBertFeatures
from cige.lattice_bert.encoder.token_batch import collate_tokens
from cige.models.dcsan import DcsanConfig
from cige.models.model import LatticeModel
from cige.models.registry import architecture
from cige.nn.bert import load_features
from cige.nn.char_features import BetweenLayers
from cige.training.objective import learning_rate_scales
from cige.training.recipe import TaggerOptimizerConfig
from cige.training.setup import set_up
from cige.training.train import train

TEXTS = ["李明在北京。", "", "今天天气很好", "南京市长江大桥" * 6]  # the last is longer than the positions
SMALL = {
    "flat": tiny.CONFIG,
    "dcsan": DcsanConfig(width=32, n_cross_heads=4, n_self_heads=4, ff_width=64),
    "bilstm_crf": architecture("bilstm_crf").config_class()(lstm_width=16),
    "soft_lexicon": architecture("soft_lexicon").config_class()(lstm_width=16),
    "lebert": architecture("lebert").config_class()(after_layer=2),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    found = tmp_path_factory.mktemp("pretrained") / "tiny"
    tiny_lattice_bert.pretrained().save(found)
    return found


def model(folder: Path, *, tuned: bool = False, name: str = "flat") -> LatticeModel:
    config = replace(SMALL[name], bert=str(folder), bert_tuned=tuned)
    return tiny.model(config=config, architecture=name, features=load_features(folder, tuned=tuned))


def emissions(made: LatticeModel, texts: list[str] = TEXTS) -> torch.Tensor:
    return tiny.emissions(made, texts)


def test_a_fine_tuned_model_and_the_folder_of_a_run_have_features_too(folder, tmp_path):
    expected = load_features(folder, tuned=False).state_dict()
    tuned = tiny_tasks.tuned("reading", [])
    tuned.save(tmp_path / "run" / "model")
    for given in (tmp_path / "run", tmp_path / "run" / "model", str(tmp_path / "run" / "model" / "encoder")):
        found = load_features(given, tuned=False)
        assert isinstance(found, LatticeBertFeatures) and found.state_dict().keys() == expected.keys()
        assert torch.equal(found.bert.pooler.weight, tuned.pretrained.bert.pooler.weight)


def test_a_tagger_has_no_features(tmp_path):
    tiny.model().save(tmp_path / "tagger")
    with pytest.raises(ModelError, match="holds 'cige model', which has no encoder whose vectors"):
        load_features(tmp_path / "tagger", tuned=False)


def test_features_are_the_vectors_of_characters(folder):
    features = load_features(folder, tuned=False)
    assert isinstance(features, LatticeBertFeatures) and features.width == 16
    batch, _ = model(folder).encode(TEXTS)
    found = features(batch)
    assert found.shape == (4, 42, 16) and not found[~batch.char_mask].any()
    expected = tiny_lattice_bert.pretrained().features(TEXTS)
    for row, text in enumerate(expected):
        torch.testing.assert_close(found[row, : len(text.char_vectors)], text.char_vectors)


@pytest.mark.parametrize("tuned", [False, True])
@pytest.mark.parametrize("wanted", [False, True])
def test_only_a_tuned_encoder_keeps_what_gradients_need(folder, tuned, wanted):
    made, kept = load_features(folder, tuned=tuned), []
    made.bert.embeddings.register_forward_hook(lambda *_: kept.append(torch.is_grad_enabled()))
    batch, _ = model(folder).encode(TEXTS)
    with torch.set_grad_enabled(wanted):
        found = made(batch)
    assert set(kept) == {tuned and wanted} and found.requires_grad == (tuned and wanted)


@pytest.mark.parametrize("name", SMALL)
def test_under_a_tagger_saved_and_loaded(folder, tmp_path, name):
    made = model(folder, name=name)
    expected = emissions(made)
    other = LatticeBertFeatures(pretrained=tiny_lattice_bert.pretrained(seed=1), tuned=False)
    own, made.tagger.encoder.features = made.tagger.encoder.features, other.eval()
    assert (emissions(made) - expected).abs().max() > 1e-3  # they reach the emissions
    made.tagger.encoder.features = own
    made.save(tmp_path / "model")
    again = LatticeModel.load(tmp_path / "model")
    assert isinstance(again.tagger.encoder.features, LatticeBertFeatures) and again.config == made.config
    torch.testing.assert_close(emissions(again), expected, atol=1e-5, rtol=0)
    again.save(tmp_path / "again", table_dtype="int8")
    torch.testing.assert_close(emissions(LatticeModel.load(tmp_path / "again")), expected, atol=0.1, rtol=0)


def test_a_damaged_encoder_in_a_model_folder_is_named(folder, tmp_path):
    model(folder).save(tmp_path / "model")
    path = tmp_path / "model/bert/model.safetensors"
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(ModelError, match=r"bert/model.safetensors: \d+ bytes, expected \d+"):
        LatticeModel.load(tmp_path / "model")


@pytest.mark.parametrize("tuned", [True, False])
def test_gradients_and_rates(folder, tuned):
    tagger = model(folder, tuned=tuned).tagger.train()
    assert tagger.encoder.features.bert.training == tuned
    config = TaggerOptimizerConfig(learning_rate=0.1, bert_learning_rate_scale=0.02)
    groups = make_optimizer(tagger, config, scales=learning_rate_scales(tagger, config)).param_groups
    names = {id(p): name for name, p in tagger.named_parameters()}
    rates = {names[id(p)]: group["lr"] for group in groups for p in group["params"]}
    assert set(rates) == {name for name, p in tagger.named_parameters() if p.requires_grad}
    own = {name: rate for name, rate in rates.items() if name.startswith("encoder.features.")}
    assert bool(own) == tuned and all(rate == pytest.approx(0.002) for rate in own.values())
    batch, _ = model(folder).encode(TEXTS)
    tagger.encoder(batch)[batch.char_mask].square().sum().backward()
    assert all(dict(tagger.named_parameters())[name].grad is not None for name in own)


# between its layers


@pytest.mark.parametrize("after_layer", [1, 2])
@pytest.mark.parametrize("words", [None, []], ids=["lattice", "characters alone"])
@torch.no_grad()
def test_a_change_between_layers_knows_the_character_of_each_vector(after_layer, words):
    """Also in windows, at pieces of several characters, and beside tokens that are words."""
    features = LatticeBertFeatures(pretrained=tiny_lattice_bert.pretrained(words=words), tuned=False).eval()
    texts = [*TEXTS, "李明 2020年"]
    batch = model_batch(texts)
    n_core = torch.zeros(batch.chars.shape)

    def change(hidden, places):
        sentence = places.sentences[:, None].expand_as(places.chars)
        assert hidden.shape[:2] == places.chars.shape == places.core.shape and (places.chars[places.core] >= 0).all()
        n_core.index_put_((sentence[places.core], places.chars[places.core]), torch.ones(()), accumulate=True)
        hidden = hidden.clone()
        hidden[:, :, 0], hidden[:, :, 1] = places.chars, sentence
        return hidden

    found = features(batch, BetweenLayers(after_layer, change))
    if after_layer < features.n_layers:
        assert not torch.allclose(found, features(batch))
        return
    for row, text in enumerate(texts):
        first = [0, 1, -1, 3, 3, 3, 3, 7] if "2020" in text else range(len(text))  # no piece covers the space
        for t, char in enumerate(first):
            assert n_core[row, t] == (char == t), (text, t)
            assert found[row, t, :2].tolist() == ([char, row] if char >= 0 else [0, 0])


def model_batch(texts: list[str]) -> LatticeBatch:
    return tiny.model().encode(texts)[0]


@pytest.mark.parametrize("after_layer", [1, 2])
@torch.no_grad()
def test_only_the_wanted_rows_of_what_was_changed(after_layer):
    pretrained = tiny_lattice_bert.pretrained()
    bert, tokenizer = pretrained.bert, pretrained.tokenizer
    batch = collate_tokens([tokenizer.encode(text) for text in ("李明在北京。", "今天")])
    rows = torch.tensor([[3, 0], [1, 2]])
    change = after_layer, lambda hidden: hidden.flip(2)
    whole = bert.encode(batch, change=change)
    torch.testing.assert_close(bert.encode(batch, rows, change), whole.gather(1, rows[:, :, None].expand(-1, -1, 16)))
    assert not torch.allclose(whole, bert.encode(batch))
    torch.testing.assert_close(bert.encode(batch, change=(after_layer, lambda hidden: hidden)), bert.encode(batch))


@torch.no_grad()
def test_lebert_over_bert_our_reads_words_that_its_encoder_does_not_know(tmp_path):
    pretrained = tiny_lattice_bert.pretrained(words=[])
    pretrained.save(tmp_path / "bert_our")
    made = model(tmp_path / "bert_our", name="lebert")
    text, other = "请罕见名字说话", "今天天气很好"
    for weight in made.tagger.encoder.adapter.parameters():
        weight.normal_(std=0.5)
    alone = made.tagger.encoder.features(made.encode([text])[0])
    before = emissions(made, [text]), emissions(made, [other])
    made.lexicon.add("罕见名字")
    assert not torch.allclose(emissions(made, [text]), before[0], atol=1e-4)
    torch.testing.assert_close(emissions(made, [other]), before[1], atol=1e-6, rtol=0)
    torch.testing.assert_close(made.tagger.encoder.features(made.encode([text])[0]), alone)
    texts = [text, "南京市长江大桥" * 6]
    together = emissions(made, texts)
    torch.testing.assert_close(together, torch.cat([emissions(made, [one]) for one in texts]), atol=1e-5, rtol=1e-5)


# by recipe


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory) -> Path:
    found = tiny_run.write_data_folder(tmp_path_factory.mktemp("data"))
    tiny_lattice_bert.pretrained().save(found / "models/lattice_bert")
    return found


@pytest.mark.parametrize("tuned", [False, True])
def test_trained_by_recipe_and_used_by_predict(data_dir, tmp_path, capsys, tuned):
    given = tiny_run.over_bert("models/lattice_bert", tuned=tuned)
    start = set_up(given, seed=1, data_dir=data_dir).tagger.state_dict()
    result = train(given, tmp_path / "run", data_dir=data_dir, device="cpu", show_progress=False)
    trained = LatticeModel.load(result.model)
    moved = {k for k, v in trained.tagger.state_dict().items() if not torch.equal(v, start[k])}
    assert "output.weight" in moved
    assert any(k.startswith("encoder.features.") for k in moved) == tuned
    capsys.readouterr()
    assert main(["predict", "李明在北京。", "--model", str(result.model), "--format", "jsonl"]) == 0
    assert json.loads(capsys.readouterr().out)["text"] == "李明在北京。"


def test_an_encoder_that_is_not_whole_is_told(data_dir, tmp_path):
    path = data_dir / "models/broken"
    tiny_lattice_bert.pretrained().save(path)
    (path / "config.json").unlink()
    with pytest.raises(ModelError, match=r"config.json: missing"):
        set_up(tiny_run.over_bert("models/broken", tuned=False), seed=1, data_dir=data_dir)
