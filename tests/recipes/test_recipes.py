"""Every recipe of tagging that ships reads well and trains."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pytest
import tiny_run
from tiny_bert import write_bert

from cige.data.user_words import UserWordRegime
from cige.models.registry import ARCHITECTURES, architecture
from cige.recipes.shipped import (
    LEARN_TYPE,
    NAMES,
    OWN_DATA,
    STUDENT,
    TABLE_6,
    TAGGING,
    TODAY,
    TODAY_STUDENT,
    shipped,
)
from cige.recipes.strict import changed
from cige.training.recipe import DataConfig, Recipe, load_recipe
from cige.training.search import read_space
from cige.training.setup import set_up
from cige.training.train import train

DATASETS = ("weibo", "resume", "msra", "ecommerce", "cluener")
PAIRS = [
    name
    for name, one in shipped().items()
    if one.kind == TAGGING and name not in (LEARN_TYPE, NAMES, STUDENT, TODAY, TODAY_STUDENT, OWN_DATA)
]


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_run.write_data_folder(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bert(tmp_path_factory.mktemp("bert"))


def test_every_data_set_has_every_model() -> None:
    variants = ["flat_head", "flat_msm", "flat_mld", "no_lexicon", "bert_flat", "bert_soft_lexicon", "dcsan_bert"]
    expected = {f"{d}/{v}" for d in DATASETS for v in [*variants, *ARCHITECTURES]} | {"weibo/paper"}
    assert set(PAIRS) >= expected and {shipped()[name].data for name in PAIRS} == set(DATASETS)


def test_every_model_with_words_has_a_twin_without_on_weibo() -> None:
    for model in ARCHITECTURES:
        if hasattr(load_recipe(f"weibo/{model}").model, "use_words"):
            twin = load_recipe("weibo/no_lexicon" if model == "flat" else f"weibo/{model}_no_words")
            full = load_recipe(f"weibo/{model}")
            assert replace(twin, name=full.name, model=replace(twin.model, use_words=True)) == full  # type: ignore[call-arg]
            assert not twin.model.use_words  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", PAIRS)
def test_reads_well_and_builds(name: str, data_dir: Path, bert: Path) -> None:
    recipe = load_recipe(name)
    assert recipe.data.dataset == name.split("/")[0] and recipe.name == name.replace("/", "-").replace("_", "-")
    made = set_up(shortened(recipe, data_dir, bert), seed=1, data_dir=data_dir)
    assert type(made.tagger.encoder).__name__ == architecture(recipe.architecture).encoder


def one_of_each_network() -> list[str]:
    """The first recipe of each network and optimiser: those of other data sets take the same steps."""
    first: dict[object, str] = {}
    for name in PAIRS:
        recipe = load_recipe(name)
        first.setdefault((recipe.model, recipe.lexicon, recipe.optimizer.name, recipe.schedule.name), name)
    return list(first.values())


@pytest.mark.parametrize("name", one_of_each_network())
def test_trains_two_steps(name: str, data_dir: Path, bert: Path, tmp_path: Path) -> None:
    short = shortened(load_recipe(name), data_dir, bert)
    result = train(short, tmp_path / "run", seed=1, data_dir=data_dir, device="cpu", show_progress=False)
    assert result.history[-1].step == 2 and (result.model / "model.safetensors").is_file()


def shortened(recipe: Recipe, data_dir: Path, bert: Path) -> Recipe:
    """The same recipe on made-up data, gazetteers and BERT, with two steps to take."""
    batch_size = min(recipe.batches.batch_size, tiny_run.N_TRAIN // 2)
    data = DataConfig(train="ner/tiny/train.bmes", dev="ner/tiny/dev.bmes", n_train=2 * batch_size)
    changes = {"training.n_epochs": 1, "training.eval_start_epoch": 1, "batches.batch_size": batch_size}
    short = changed(recipe, changes | {"schedule.warmup": "5%"})
    for gazetteer in recipe.lexicon.gazetteers:
        (data_dir / gazetteer).parent.mkdir(parents=True, exist_ok=True)
        (data_dir / gazetteer).write_text("重庆\n大桥\n", encoding="utf-8")
    model = replace(recipe.model, bert=str(bert) if recipe.model.bert else None)
    return replace(short, data=data, model=model)


def test_variants_differ_from_flat_in_one_setting_only() -> None:
    for dataset in DATASETS:
        flat = load_recipe(f"{dataset}/flat")
        for variant, field, value in (
            ("flat_head", "distances", ("hh",)),
            ("flat_msm", "mask_self_matched", True),
            ("flat_mld", "max_distance", 10),
            ("no_lexicon", "use_words", False),
        ):
            other = load_recipe(f"{dataset}/{variant}")
            assert replace(other, name=flat.name, model=flat.model) == flat
            changed = {k for k, v in asdict(other.model).items() if v != asdict(flat.model)[k]}
            assert changed == {field} and getattr(other.model, field) == value


def test_table_5_and_table_6() -> None:
    paper = load_recipe("weibo/paper")
    o, s, m = paper.optimizer, paper.schedule, paper.model
    assert (paper.batches.batch_size, o.learning_rate, s.decay, o.name, o.momentum) == (10, 1e-3, 0.05, "sgd", 0.9)
    assert (m.width, m.n_heads, m.ff_width, m.embed_dropout_prob, m.output_dropout_prob) == (160, 8, 480, 0.5, 0.3)
    assert (s.warmup, s.name) == ("10 epochs", "inverse_epoch")
    assert read_space(TABLE_6) == {
        "batches.batch_size": [8, 10],
        "optimizer.learning_rate": [1e-3, 8e-4],
        "model.head_width": [16, 20],
        "model.n_heads": [4, 8, 12],
        "schedule.warmup": ["1 epochs", "5 epochs", "10 epochs"],
    }


def test_user_words_are_simulated_everywhere() -> None:
    default = UserWordRegime()
    for name in PAIRS:
        if shipped()[name].system != "paper":
            regime = load_recipe(name).user_words
            assert regime.sentence_prob >= default.sentence_prob and regime.n_false == default.n_false, name
