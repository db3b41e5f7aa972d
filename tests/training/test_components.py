"""Recipes with `model.components`: training, the folder, starting from such a model, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tiny
import tiny_run
import torch
import yaml
from invalid_settings import silly_values

from cige.api import load
from cige.data.components import NO_SEQUENCE
from cige.data.vocabulary import char_codes
from cige.errors import LexiconError, RecipeError
from cige.models.config import ComponentsConfig
from cige.models.model import LatticeModel
from cige.runtime.native_model import NativeModel
from cige.training.recipe import Recipe, load_recipe, recipe_from_dict, recipe_to_yaml
from cige.training.setup import set_up
from cige.training.train import train

TABLE = "components.tsv"


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    folder = tiny_run.write_data_folder(tmp_path / "data")
    rows = tiny.components("".join(s.text for s in tiny.sentences()) + tiny.UNSEEN)
    lines = [f"{char}\t{' '.join(parts)}" for char, parts in rows.items()]
    (folder / TABLE).write_text("\n".join(["# made up", *lines]), encoding="utf-8")
    return folder


def recipe_of(*, architecture: str = "flat", **settings: Any) -> Recipe:
    model = {"lstm_width": 16} if architecture == "soft_lexicon" else {"n_heads": 2, "head_width": 8, "ff_width": 16}
    return recipe_from_dict(
        {
            "name": "tiny",
            "data": {"train": "ner/tiny/train.bmes", "dev": "ner/tiny/dev.bmes", "n_train": 20},
            "architecture": architecture,
            "model": model | {"components": {"table": TABLE, "embedding_width": 5, "width": 6} | settings},
            "training": {"n_epochs": 1},
            "batches": {"batch_size": 10},
        }
    )


@pytest.mark.parametrize("architecture", ["flat", "soft_lexicon", "tener"])
def test_two_steps_change_every_weight_and_the_folder_needs_no_table(data_dir, tmp_path, architecture):
    recipe = recipe_of(architecture=architecture)
    before = set_up(recipe, seed=1, data_dir=data_dir)
    result = train(recipe, tmp_path / "run", seed=1, data_dir=data_dir, device="cpu", show_progress=False)
    assert result.history[-1].step == 2
    (data_dir / TABLE).unlink()
    after = LatticeModel.load(result.model)
    assert after.vocabulary.components.same_as(before.vocabulary.components)
    assert after.config.components == ComponentsConfig(table=TABLE, embedding_width=5, width=6)
    layer = dict(before.tagger.encoder.components.named_parameters())
    for name, weight in after.tagger.encoder.components.named_parameters():
        assert not torch.equal(weight, layer[name]), name
    assert after.tagger.encoder.components.embedding.weight[0].abs().max() == 0  # padding
    ner = load(result.model)
    assert isinstance(ner.model, NativeModel) == (architecture != "tener")  # as without components
    assert isinstance(ner("李明在轩辕。"), list)


def test_the_table_has_the_components_of_the_training_text(data_dir):
    table = set_up(recipe_of(), seed=1, data_dir=data_dir).vocabulary.components
    assert 2 < table.n_components <= 2 + 23
    assert (table.look_up(char_codes(tiny.UNSEEN)) != NO_SEQUENCE).all()
    assert table.look_up(char_codes("龘。A")).tolist() == [NO_SEQUENCE] * 3


def test_another_table_is_another_run(data_dir):
    first = set_up(recipe_of(), seed=1, data_dir=data_dir).fingerprint()
    text = (data_dir / TABLE).read_text(encoding="utf-8")
    (data_dir / TABLE).write_text(f"{text}\n龘\t1 2\n", encoding="utf-8")
    assert set_up(recipe_of(), seed=1, data_dir=data_dir).fingerprint() != first


def test_a_recipe_file_states_them(tmp_path):
    recipe = load_recipe("weibo/flat", ["model.components.table=components.tsv", "model.components.width=20"])
    assert recipe.model.components == ComponentsConfig(table="components.tsv", width=20)
    (tmp_path / "mine.yaml").write_text(recipe_to_yaml(recipe), encoding="utf-8")
    assert load_recipe(tmp_path / "mine.yaml") == recipe
    assert recipe_from_dict(yaml.safe_load(recipe_to_yaml(recipe))) == recipe
    assert load_recipe("weibo/flat").model.components is None


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("model.components.width=20", "'model.components.table' is missing"),
        ("model.components=components.tsv", "expected a mapping with the keys table, embedding_width"),
        ("model.components.tabel=x", "did you mean 'model.components.table'"),
        ("model.components.table=5", "model.components.table is 5 .*expected a text"),
    ],
)
def test_settings_that_are_none_are_refused(setting, message):
    with pytest.raises(RecipeError, match=message):
        load_recipe("weibo/flat", [setting])


@pytest.mark.parametrize(("key", "value"), list(silly_values(ComponentsConfig)))
def test_silly_settings_are_refused_by_name_or_train(data_dir, key, value):
    try:
        recipe = recipe_of(**{key: value})
    except RecipeError as error:
        assert f"model.components.{key}" in str(error)
        return
    tagger = set_up(recipe, seed=1, data_dir=data_dir).tagger.train()
    model = tiny.model(config=replace(tiny.CONFIG, components=recipe.model.components))
    vectors = tagger.encoder.components(model.batch(model.lattices(["李明在轩辕。"])))
    assert vectors.isfinite().all()


def test_no_table_and_a_bad_one(data_dir):
    (data_dir / TABLE).write_text("李\t木 子\n明 日 月\n", encoding="utf-8")
    with pytest.raises(LexiconError, match=r"components.tsv, line 2: '明 日 月': no tab"):
        set_up(recipe_of(), seed=1, data_dir=data_dir)
    (data_dir / TABLE).unlink()
    with pytest.raises(RecipeError, match=r"components.tsv: no such file"):
        set_up(recipe_of(), seed=1, data_dir=data_dir)


def test_a_recipe_that_starts_from_a_model_reads_its_table(data_dir, tmp_path):
    first = train(recipe_of(), tmp_path / "run", seed=1, data_dir=data_dir, device="cpu", show_progress=False)
    (data_dir / TABLE).unlink()
    own = {"train": str(data_dir / "ner/tiny/train.bmes"), "dev": str(data_dir / "ner/tiny/dev.bmes")}
    path = tmp_path / "on.yaml"
    path.write_text(yaml.safe_dump({"name": "on", "data": own, "start_from": str(first.model)}), encoding="utf-8")
    source = LatticeModel.load(first.model)
    setup = set_up(load_recipe(path), seed=2)
    assert setup.vocabulary.components.same_as(source.vocabulary.components)
    for name, weight in source.tagger.encoder.components.state_dict().items():
        assert torch.equal(setup.tagger.encoder.components.state_dict()[name], weight), name
    with pytest.raises(RecipeError, match=r"model.components is given, but components are those of .*leave it out"):
        load_recipe(path, ["model.components.table=other.tsv"])
    rest = ["start_parts=vectors", "model.n_heads=2", "model.head_width=8", "model.char_words=false"]
    assert set_up(load_recipe(path, rest), seed=2).vocabulary.components is None
    (tmp_path / "other.tsv").write_text("李\t木 子\n", encoding="utf-8")
    other = load_recipe(path, [*rest, f"model.components.table={tmp_path}/other.tsv"])
    assert len(set_up(other, seed=2).vocabulary.components) == 2


def test_a_model_without_components_cannot_be_started_from_with_them(data_dir, tmp_path):
    plain = replace(recipe_of(), model=replace(recipe_of().model, components=None))
    first = train(plain, tmp_path / "run", seed=1, data_dir=data_dir, device="cpu", show_progress=False)
    own = {"train": str(data_dir / "ner/tiny/train.bmes"), "dev": str(data_dir / "ner/tiny/dev.bmes")}
    path = tmp_path / "on.yaml"
    path.write_text(yaml.safe_dump({"name": "on", "data": own, "start_from": str(first.model)}), encoding="utf-8")
    with pytest.raises(RecipeError, match=r"model\.components is given"):
        load_recipe(path, [f"model.components.table={data_dir}/{TABLE}"])


def test_a_table_of_other_characters_is_refused(data_dir):
    (data_dir / TABLE).write_text("鯉\t魚 里\n", encoding="utf-8")
    with pytest.raises(RecipeError, match=r"none of its characters is in the training text.*traditional"):
        set_up(recipe_of(), seed=1, data_dir=data_dir)
