"""`start_from`: a recipe that goes on from a trained model, with no vector files."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import tiny
import torch
import yaml
from tiny_bert import write_bert

from cige.api import load
from cige.data import write_sentences
from cige.data.vocabulary import UNK, USER
from cige.errors import ModelError, RecipeError
from cige.folders.hub import BUNDLED
from cige.folders.manifest import update_manifest
from cige.models.model import LatticeModel
from cige.nn.bert import load_features
from cige.recipes.shipped import OWN_DATA
from cige.training.recipe import Recipe, load_recipe, recipe_from_dict, recipe_to_yaml
from cige.training.setup import set_up
from cige.training.train import train


@pytest.fixture
def own_data(tmp_path: Path) -> list[str]:
    """Overrides for labelled data alone: no vectors, no lexicon."""
    write_sentences(tmp_path / "train.bmes", tiny.sentences(40, seed=1))
    write_sentences(tmp_path / "dev.bmes", tiny.sentences(20, seed=2))
    return [f"data.train={tmp_path}/train.bmes", f"data.dev={tmp_path}/dev.bmes", "training.n_epochs=2"]


def recipe_of(own_data: list[str], *more: str) -> Recipe:
    return load_recipe(OWN_DATA, [*own_data, *more])


def test_from_the_bundled_model_with_labels_of_ones_own(own_data: list[str], tmp_path: Path) -> None:
    recipe = recipe_of(own_data, "training.n_epochs=6")
    result = train(recipe, tmp_path / "run", seed=1, device="cpu", show_progress=False)
    assert result.dev_f1 > 0.5
    model = LatticeModel.load(result.model)
    assert model.labels == tiny.LABELS and len(model.lexicon) > 100_000
    ner = load(result.model)
    ner.lexicon.add("轩辕澜沧江")
    assert isinstance(ner("李明在南京市轩辕澜沧江。"), list)
    further = recipe_of(own_data, f"start_from={tmp_path / 'run'}")  # the run's folder stands for its model
    assert set_up(further, seed=1).tagger.tags == model.tags


def test_a_finished_run_tells_that_the_model_it_started_from_is_another(own_data: list[str], tmp_path: Path) -> None:
    start, folder = tmp_path / "start", tmp_path / "run"
    tiny.model().save(start)
    recipe = recipe_of(own_data, f"start_from={start}", "training.n_epochs=1")
    result = train(recipe, folder, seed=1, device="cpu", show_progress=False)
    assert set(result.inputs) == {"start_from"}
    update_manifest(start, calibration={})  # says nothing of what training reads
    assert train(recipe, folder, seed=1, device="cpu", show_progress=False) == result
    tiny.model(seed=2).save(start)
    with pytest.raises(RecipeError, match=r"with other files: start_from \(.*start\) changed since; choose"):
        train(recipe, folder, seed=1, device="cpu", show_progress=False)


def test_the_start_is_the_trained_encoder_and_a_user_word_still_reaches_it(own_data: list[str]) -> None:
    setup = set_up(recipe_of(own_data), seed=1)
    source = LatticeModel.load(BUNDLED)
    own, theirs = setup.tagger.encoder.state_dict(), source.tagger.encoder.state_dict()
    for name in ("fusion.weight.weight", "embeddings.backoff.weight", "embeddings.backoff.bias"):
        assert torch.equal(own[name], theirs[name]), name
    tables = setup.tagger.encoder.embeddings, source.tagger.encoder.embeddings
    assert torch.equal(*(table.word(torch.tensor([UNK, USER])) for table in tables))  # what training taught of both
    assert setup.vocabulary.n_tuned < source.vocabulary.n_rows


def test_a_model_with_a_bert_brings_its_own(tmp_path: Path, own_data: list[str]) -> None:
    bert = write_bert(tmp_path / "bert")
    config = replace(tiny.CONFIG, bert=str(bert), bert_tuned=True)
    source = tiny.model(config=config, features=load_features(str(bert), tuned=True))
    with torch.no_grad():
        for parameter in source.tagger.encoder.features.parameters():
            parameter.add_(0.01)
    source.save(tmp_path / "source")
    shutil.rmtree(bert)
    recipe = recipe_of(own_data, f"start_from={tmp_path}/source")
    started = set_up(recipe, seed=1).tagger.encoder.features
    for own, theirs in zip(started.parameters(), source.tagger.encoder.features.parameters(), strict=True):
        assert torch.equal(own, theirs) and own.requires_grad


def test_settings_come_from_the_model_where_the_recipe_is_silent(own_data: list[str]) -> None:
    recipe = recipe_of(own_data, "model.ff_dropout_prob=0.4")
    assert recipe.model.bigram_backoff and recipe.model.ff_dropout_prob == 0.4  # type: ignore[attr-defined]
    again = recipe_from_dict(yaml.safe_load(recipe_to_yaml(recipe)))
    assert again == recipe


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("start_from=nowhere", r"start_from: nowhere.*"),
        ("architecture=tener", "holds a flat, but the recipe's architecture is tener"),
        ("vectors.length=unit", "vectors is given, but words and vectors are those of start_from"),
        ("lexicon.path=words.txt", "lexicon is given"),
        ("data.n_held_out=3", "data.dev and data.n_held_out are both given"),
    ],
)
def test_what_does_not_go_together_is_refused(own_data: list[str], override: str, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        recipe_of(own_data, override)


def test_another_shape_is_refused(own_data: list[str], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="leave them out of the recipe"):
        train(recipe_of(own_data, "model.n_heads=4"), tmp_path / "run", device="cpu", show_progress=False)


def test_settings_of_the_network_that_are_no_mapping_are_refused(own_data: list[str]) -> None:
    with pytest.raises(RecipeError, match=r"override model: model is 3 \(int\), expected a mapping with the keys "):
        recipe_of(own_data, "model=3")
