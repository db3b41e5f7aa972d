"""Every recipe that ships reads well and trains."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pytest
import tiny_run
from tiny_bert import write_bert

from cige.data.user_words import UserWordRegime
from cige.models.registry import ARCHITECTURES, architecture
from cige.training.recipe import DataConfig, Recipe, load_recipe
from cige.training.search import TABLE_6, read_space
from cige.training.setup import set_up
from cige.training.train import train

ROOT = Path(__file__).resolve().parents[2]
DATASETS = ("weibo", "resume", "msra", "ecommerce", "cluener")
FILES = sorted(p for name in DATASETS for p in (ROOT / "recipes" / name).glob("*.yaml"))


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_run.write_data_folder(tmp_path_factory.mktemp("data"))


def test_every_data_set_has_every_model() -> None:
    variants = ["flat_head", "flat_msm", "flat_mld", "no_lexicon", "bert_flat", "bert_soft_lexicon", "dcsan_bert"]
    expected = {f"{d}/{v}" for d in DATASETS for v in [*variants, *ARCHITECTURES]} | {"weibo/paper"}
    assert {name(p) for p in FILES} >= expected


def test_every_model_with_words_has_a_twin_without_on_weibo() -> None:
    folder = ROOT / "recipes/weibo"
    for model in ARCHITECTURES:
        if hasattr(load_recipe(folder / f"{model}.yaml").model, "use_words"):
            twin = load_recipe(folder / ("no_lexicon.yaml" if model == "flat" else f"{model}_no_words.yaml"))
            full = load_recipe(folder / f"{model}.yaml")
            assert replace(twin, name=full.name, model=replace(twin.model, use_words=True)) == full  # type: ignore[call-arg]
            assert not twin.model.use_words  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", FILES, ids=name)
def test_reads_well_and_builds(path: Path, data_dir: Path, tmp_path: Path) -> None:
    recipe = load_recipe(path)
    assert recipe.data.dataset == path.parent.name and recipe.name == name(path).replace("/", "-").replace("_", "-")
    made = set_up(shortened(recipe, data_dir, tmp_path), seed=1, data_dir=data_dir)
    assert type(made.tagger.encoder).__name__ == architecture(recipe.architecture).encoder


def one_of_each_network() -> list[Path]:
    """The first recipe of each network and optimiser: those of other data sets take the same steps."""
    first: dict[object, Path] = {}
    for path in FILES:
        recipe = load_recipe(path)
        training = recipe.training
        first.setdefault((recipe.model, recipe.lexicon, training.optimizer, training.schedule, training.clip), path)
    return list(first.values())


@pytest.mark.parametrize("path", one_of_each_network(), ids=name)
def test_trains_two_steps(path: Path, data_dir: Path, tmp_path: Path) -> None:
    short = shortened(load_recipe(path), data_dir, tmp_path)
    result = train(short, tmp_path, seed=1, data_dir=data_dir, device="cpu", show_progress=False)
    assert result.history[-1].step == 2 and (result.model / "model.safetensors").is_file()


def shortened(recipe: Recipe, data_dir: Path, tmp_path: Path) -> Recipe:
    """The same recipe on data, gazetteers and a BERT made on the spot, with two steps to take."""
    batch_size = min(recipe.training.batch_size, tiny_run.N_TRAIN // 2)
    data = DataConfig(train="ner/tiny/train.bmes", dev="ner/tiny/dev.bmes", n_train=2 * batch_size)
    training = replace(recipe.training, n_epochs=1, warmup_epochs=None, eval_start_epoch=1, batch_size=batch_size)
    for gazetteer in recipe.lexicon.gazetteers:
        (data_dir / gazetteer).parent.mkdir(parents=True, exist_ok=True)
        (data_dir / gazetteer).write_text("重庆\n大桥\n", encoding="utf-8")
    bert = str(write_bert(tmp_path / "bert")) if recipe.model.bert else None
    return replace(recipe, data=data, training=training, model=replace(recipe.model, bert=bert))


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


def test_user_words_are_simulated_everywhere() -> None:
    default = UserWordRegime()
    for path in FILES:
        if path.stem != "paper":
            regime = load_recipe(path).user_words
            assert regime.sentence_prob >= default.sentence_prob and regime.n_false == default.n_false, path
