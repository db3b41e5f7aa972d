"""BERT features under FLAT: from recipe to model folder, saved and loaded, and tuned at a rate of their own."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import tiny
import tiny_run
import torch
from crafted_folders import sign
from tiny_bert import CHINESE, TEXTS, write_bert
from tiny_run import over_bert

from cige.engine.optimizer import make_optimizer
from cige.errors import ModelError, RecipeError
from cige.models.build import Vectors, build_tagger, input_tables
from cige.models.flat import FlatConfig
from cige.models.model import LatticeModel
from cige.nn.bert import BertFeatures
from cige.training.objective import learning_rate_scales
from cige.training.recipe import TaggerOptimizerConfig, load_recipe, recipe_from_dict, recipe_to_yaml
from cige.training.setup import set_up
from cige.training.train import train

transformers = pytest.importorskip("transformers")


def model(bert: Path, *, tuned: bool, config: FlatConfig = tiny.CONFIG) -> LatticeModel:
    plain = tiny.model(config=config)
    tables = input_tables(
        plain.lattices([s.text for s in tiny.sentences()]),
        plain.lexicon,
        tiny_vectors(),
        seed=0,
    )
    config = replace(config, bert=str(bert), bert_tuned=tuned)
    torch.manual_seed(0)
    tagger = build_tagger(config, tables, tiny.LABELS, features=BertFeatures.load(bert, tuned=tuned))
    return replace(plain, tagger=tagger.eval(), vocabulary=tables.vocabulary, config=config)


def tiny_vectors() -> Vectors:
    tables = (tiny.random_table(words, 8, seed=1) for words in (CHINESE, ["北京", "南京"], tiny.WORDS))
    return Vectors(*tables)


def emissions(made: LatticeModel, texts: list[str] = TEXTS) -> torch.Tensor:
    return tiny.emissions(made, texts)


def test_features_reach_the_emissions(bert, tmp_path):
    made = model(bert, tuned=False)
    before = emissions(made)
    other = BertFeatures.load(write_bert(tmp_path / "other", seed=1), tuned=False)
    made.tagger.encoder.features = other.eval()
    assert (emissions(made) - before).abs().max() > 1e-3


@pytest.mark.parametrize("tuned", [False, True])
def test_saved_and_loaded_without_the_bert_it_came_from(tmp_path, tuned):
    folder = write_bert(tmp_path / "bert")
    made = model(folder, tuned=tuned)
    with torch.no_grad():
        for p in made.tagger.encoder.features.parameters():
            p.add_(0.01)  # as training would
    made.save(tmp_path / "model")
    expected = emissions(made)
    folder.rename(tmp_path / "gone")
    again = LatticeModel.load(tmp_path / "model")
    assert again.config == made.config and isinstance(again.tagger.encoder.features, BertFeatures)
    torch.testing.assert_close(emissions(again), expected, atol=1e-6, rtol=0)
    assert any(p.requires_grad for p in again.tagger.encoder.features.parameters()) == tuned
    again.save(tmp_path / "again", table_dtype="int8")
    torch.testing.assert_close(emissions(LatticeModel.load(tmp_path / "again")), expected, atol=0.1, rtol=0)


def test_the_hub_is_not_asked_for_the_bert_of_a_model_folder(bert, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model(bert, tuned=False).save("model")
    shutil.rmtree("model/bert")
    sign(Path("model"))

    def from_pretrained(name, **options):
        assert (name, options["local_files_only"]) == (str(Path("model/bert")), True)
        raise OSError("not here")

    monkeypatch.setattr(transformers.AutoModel, "from_pretrained", from_pretrained)
    with pytest.raises(ModelError, match=r"model/bert: not a BERT that can be read \(not here\)"):
        LatticeModel.load("model")


def test_a_model_folder_whose_bert_is_damaged(bert, tmp_path):
    model(bert, tuned=False).save(tmp_path / "model")
    path = tmp_path / "model/bert/model.safetensors"
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(ModelError, match=r"bert/model.safetensors: \d+ bytes, expected \d+"):
        LatticeModel.load(tmp_path / "model")
    path.unlink()
    with pytest.raises(ModelError, match=r"bert/model.safetensors: missing"):
        LatticeModel.load(tmp_path / "model")


def test_a_tuned_bert_learns_at_its_own_rate(bert):
    config = TaggerOptimizerConfig(learning_rate=0.1, bert_learning_rate_scale=0.02, embedding_learning_rate_scale=0.5)
    for tuned in (True, False):
        tagger = model(bert, tuned=tuned).tagger
        groups = make_optimizer(tagger, config, scales=learning_rate_scales(tagger, config)).param_groups
        names = {id(p): name for name, p in tagger.named_parameters()}
        rates = {names[id(p)]: (g["lr"], g["weight_decay"]) for g in groups for p in g["params"]}
        assert set(rates) == {name for name, p in tagger.named_parameters() if p.requires_grad}
        of_bert = {name: rate for name, rate in rates.items() if name.startswith("encoder.features.")}
        assert bool(of_bert) == tuned
        assert all(rate == pytest.approx(0.002) for rate, _ in of_bert.values())
        if tuned:
            assert of_bert["encoder.features.bert.encoder.layer.0.output.dense.weight"][1] == config.weight_decay
            assert of_bert["encoder.features.bert.encoder.layer.0.output.dense.bias"][1] == 0.0
        assert rates["output.weight"] == (0.1, config.weight_decay)


# by recipe


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory) -> Path:
    folder = tiny_run.write_data_folder(tmp_path_factory.mktemp("data"))
    write_bert(folder / "models/bert")
    return folder


@pytest.mark.parametrize("tuned", [False, True])
def test_two_steps_of_training_by_recipe(data_dir, tmp_path, tuned):
    given_recipe = over_bert("models/bert", tuned=tuned)  # relative to the data folder, as all paths of a recipe
    start = set_up(given_recipe, seed=1, data_dir=data_dir).tagger.state_dict()
    result = train(given_recipe, tmp_path / "run", data_dir=data_dir, device="cpu", show_progress=False)
    trained = LatticeModel.load(result.model)
    moved = {k for k, v in trained.tagger.state_dict().items() if not torch.equal(v, start[k])}
    assert "output.weight" in moved
    assert any(k.startswith("encoder.features.") for k in moved) == tuned
    n_frozen = sum(p.numel() for p in trained.tagger.encoder.features.parameters())
    n_all = sum(p.numel() for p in trained.tagger.parameters())
    assert result.n_parameters == n_all - (0 if tuned else n_frozen)


def test_the_same_seed_gives_the_same_start(data_dir):
    prints = {set_up(over_bert("models/bert", tuned=True), seed=s, data_dir=data_dir).fingerprint() for s in (1, 1, 2)}
    assert len(prints) == 2


def test_a_recipe_names_a_bert_that_is_not_there(data_dir, monkeypatch):
    def no_network(name, **options):
        assert not options["local_files_only"]  # it may be a hub id
        raise OSError("no network")

    monkeypatch.setattr(transformers.AutoModel, "from_pretrained", no_network)
    with pytest.raises(ModelError, match=r"^models/none: not a BERT that can be read \(no network\)"):
        set_up(over_bert("models/none", tuned=False), seed=1, data_dir=data_dir)


def test_tuning_no_bert_is_refused(tmp_path):
    with pytest.raises(RecipeError, match=r"model.bert_tuned is true, but model.bert names no BERT"):
        recipe_from_dict({"name": "x", "data": {"dataset": "weibo"}, "model": {"bert_tuned": True}})


def test_the_recipe_for_weibo_is_the_papers(tmp_path):
    found = load_recipe("weibo/bert_flat")
    assert found.model.bert and found.model.bert_tuned and found.model.use_words
    again = tmp_path / "again.yaml"
    again.write_text(recipe_to_yaml(found), encoding="utf-8")
    assert load_recipe(again) == found
