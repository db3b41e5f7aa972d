"""Every recipe that ships reads well and trains."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pytest
import tiny_run
from tiny_bert import write_bert

from cige.data.user_words import UserWordRegime
from cige.training.recipe import DataConfig, load_recipe
from cige.training.search import TABLE_6, read_space
from cige.training.train import train

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(p for p in (ROOT / "recipes").glob("*/*.yaml") if p.parent.name != "search")
DATASETS = ("weibo", "resume", "msra", "ecommerce", "cluener")


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_run.write_data_folder(tmp_path_factory.mktemp("data"))


def test_every_data_set_has_every_variant() -> None:
    variants = ("flat", "flat_head", "flat_msm", "flat_mld", "no_lexicon")
    assert {name(p) for p in FILES} >= {f"{d}/{v}" for d in DATASETS for v in variants} | {"weibo/paper"}


@pytest.mark.parametrize("path", FILES, ids=name)
def test_trains_two_steps(path: Path, data_dir: Path, tmp_path: Path) -> None:
    recipe = load_recipe(path)
    assert recipe.data.dataset == path.parent.name and recipe.name == name(path).replace("/", "-").replace("_", "-")
    batch_size = min(recipe.training.batch_size, tiny_run.N_TRAIN // 2)
    data = DataConfig(train="ner/tiny/train.bmes", dev="ner/tiny/dev.bmes", n_train=2 * batch_size)
    training = replace(recipe.training, n_epochs=1, warmup_epochs=None, eval_start_epoch=1, batch_size=batch_size)
    bert = str(write_bert(tmp_path / "bert")) if recipe.model.bert else None
    short = replace(recipe, data=data, training=training, model=replace(recipe.model, bert=bert))
    result = train(short, tmp_path, seed=1, data_dir=data_dir, device="cpu", show_progress=False)
    assert result.history[-1].step == 2 and (result.model / "model.safetensors").is_file()


@pytest.mark.parametrize("path", [*FILES, ROOT / "recipes/search/table6.yaml"], ids=name)
def test_begins_with_the_command_that_runs_it(path: Path) -> None:
    first = path.read_text(encoding="utf-8").splitlines()[0].split()
    assert first[:2] == ["#", "cige"] and first[2] in ("train", "search")
    assert str(path.relative_to(ROOT)) in first and "--output" in first


def test_variants_differ_from_flat_in_one_setting_only() -> None:
    for dataset in DATASETS:
        flat = load_recipe(ROOT / f"recipes/{dataset}/flat.yaml")
        for variant, field, value in (
            ("flat_head", "distances", ("hh",)),
            ("flat_msm", "mask_self_matched", True),
            ("flat_mld", "max_distance", 10),
            ("no_lexicon", "use_words", False),
        ):
            other = load_recipe(ROOT / f"recipes/{dataset}/{variant}.yaml")
            assert replace(other, name=flat.name, model=flat.model) == flat
            changed = {k for k, v in asdict(other.model).items() if v != asdict(flat.model)[k]}
            assert changed == {field} and getattr(other.model, field) == value


def test_table_5_and_table_6() -> None:
    paper = load_recipe(ROOT / "recipes/weibo/paper.yaml")
    t, m = paper.training, paper.model
    assert (t.batch_size, t.learning_rate, t.decay, t.optimizer, t.momentum) == (10, 1e-3, 0.05, "sgd", 0.9)
    assert (m.width, m.n_heads, m.ff_width, m.embed_dropout_prob, m.output_dropout_prob) == (160, 8, 480, 0.5, 0.3)
    assert (t.warmup_epochs, t.schedule) == (10, "inverse_epoch")
    assert read_space(ROOT / "recipes/search/table6.yaml") == TABLE_6


def test_user_words_are_simulated_by_default_everywhere() -> None:
    for path in FILES:
        if path.stem != "paper":
            assert load_recipe(path).user_words == UserWordRegime(), path
