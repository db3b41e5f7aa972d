"""Every setting of every recipe: a silly value is refused with its name when the recipe is read, or it trains."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import tiny
import tiny_bert
import tiny_run
import torch

from cige.data.mentions import MentionRegime
from cige.data.user_words import UserWordRegime
from cige.engine.settings import BatchConfig, CheckpointConfig, OptimizerConfig, ScheduleConfig, TrainingConfig
from cige.errors import RecipeError
from cige.models.lattice_bert.network import LatticeBertConfig
from cige.models.registry import ARCHITECTURES, architecture
from cige.nn.bert import BertFeatures
from cige.pretraining import recipe as pretraining
from cige.pretraining.dataset import InstanceConfig
from cige.pretraining.pretrain import pretrain
from cige.recipes.strict import changed
from cige.tasks.config import TuningConfig
from cige.tasks.finetune import finetune
from cige.tasks.registry import get_task
from cige.tasks.task_data import load_task_data
from cige.training.recipe import DataConfig, Recipe, TaggerOptimizerConfig, recipe_from_dict
from cige.training.train import train

for folder in ("pretraining", "tasks"):
    sys.path.insert(0, str(Path(__file__).parents[1] / folder))
tiny_corpus, tiny_tasks = import_module("tiny_corpus"), import_module("tiny_tasks")

SILLY: dict[type, list[Any]] = {
    int: [-1, 0, 1, 3],
    float: [float("nan"), float("inf"), -0.1, 0.0, 1.0, 1.5],
    tuple: [[], [-1], ["?"], ["hh", "hh"], [3]],
}
MODELS = sorted(ARCHITECTURES)


def kinds_of(hint: Any) -> list[type]:
    """The kinds of number or list that a field of that type takes; none for texts, switches and choices."""
    shown = str(hint)
    if hint in (int, float):
        return [hint]
    return [kind for kind in SILLY if f"{kind.__name__} |" in shown or shown.startswith(f"{kind.__name__}[")]


def silly_values(config: type, *, without: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    hints = get_type_hints(config)
    for field in fields(config):
        for kind in kinds_of(hints[field.name]):
            if field.name not in without:
                yield from ((field.name, value) for value in SILLY[kind])


SMALL: dict[str, dict[str, Any]] = {
    "flat": {"n_heads": 1, "head_width": 8, "ff_width": 16},
    "soft_lexicon": {"lstm_width": 8},
    "dcsan": {"width": 16, "n_cross_heads": 2, "n_self_heads": 2, "ff_width": 16},
    "cgn": {"lstm_width": 8, "head_width": 6, "graph_width": 8},
    "bert_crf": {"bert": "given", "hidden_widths": [8]},
    "bilstm_crf": {"lstm_width": 8},
    "lattice_lstm": {"lstm_width": 8},
    "lgn": {"width": 12, "n_steps": 2, "n_heads": 2, "head_width": 6, "place_width": 4},
    "lr_cnn": {"width": 8, "position_width": 6},
    "multi_digraph": {"state_width": 12, "lstm_width": 16, "n_layers": 1},
    "plt": {"n_heads": 2, "head_width": 8, "ff_width": 16, "n_layers": 1, "gru_width": 16},
    "tener": {"n_heads": 2, "head_width": 8, "ff_width": 16},
}
TEXTS = ["李明在北京市长江大桥。", "重庆人和药店", "好", "今天天气很好的中国银行经理请了欧阳修南京市长江大桥说话"]


def recipe_of(name: str, **model: Any) -> Recipe:
    return recipe_from_dict(
        {"name": "silly", "data": {"dataset": "weibo"}, "architecture": name, "model": SMALL[name] | model}
    )


@pytest.fixture(scope="module")
def bert_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bert")
    tiny_bert.write_bert(folder)
    return folder


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [(name, *silly) for name in MODELS for silly in silly_values(architecture(name).config_class())],
)
def test_settings_of_models(name: str, key: str, value: Any, bert_folder: Path) -> None:
    try:
        config = recipe_of(name, **{key: value}).model
    except RecipeError as error:
        assert f"model.{key}" in str(error)
        return
    features = None if config.bert is None else BertFeatures.load(bert_folder, tuned=config.bert_tuned)
    model = tiny.model(config=config, architecture=name, features=features)
    model.tagger.train()
    batch, lattices = model.encode(TEXTS)
    loss = model.tagger.loss(replace(batch, tags=torch.zeros_like(batch.chars)))
    loss.backward()
    assert loss.isfinite()
    assert all(p.grad.isfinite().all() for p in model.tagger.parameters() if p.grad is not None)
    assert torch.from_numpy(model.emissions(lattices)).isfinite().all()


def test_the_sinusoid_of_an_odd_width_is_refused() -> None:
    for settings in ({"n_heads": 3, "head_width": 5}, {"n_heads": 1, "head_width": 1}):
        with pytest.raises(RecipeError, match=r"model.n_heads is .* model.head_width .*expected an even product"):
            recipe_of("flat", **settings)
    assert recipe_of("flat", n_heads=2, head_width=5).model.width == 10


SHARED = {"schedule": ScheduleConfig, "checkpoints": CheckpointConfig}
IN_EPOCHS = SHARED | {"training": TrainingConfig, "batches": BatchConfig}
SECTIONS = IN_EPOCHS | {
    "optimizer": TaggerOptimizerConfig,
    "data": DataConfig,
    "user_words": UserWordRegime,
    "mentions": MentionRegime,
}


@pytest.mark.parametrize(
    ("section", "key", "value"), [(part, *silly) for part, kind in SECTIONS.items() for silly in silly_values(kind)]
)
def test_settings_of_training(section: str, key: str, value: Any, data_dir: Path, tmp_path: Path) -> None:
    known = asdict(tiny_run.tiny_recipe(n_epochs=1))
    known["data"]["n_train"] = 12
    known["model"] = SMALL["flat"]
    known[section][key] = value
    try:
        recipe = recipe_from_dict(known)
    except RecipeError as error:
        assert key in str(error)
        return
    try:
        result = train(recipe, tmp_path, seed=1, data_dir=data_dir, device="cpu", show_progress=False)
    except RecipeError as error:  # what only the data shows: three training sentences with no entity in them, say
        assert section == "data" and str(error)
        return
    assert all(math.isfinite(record.train["loss"]) for record in result.history)


PARTS = {
    "model": LatticeBertConfig,
    "instances": InstanceConfig,
    "short": pretraining.PhaseConfig,
    "long": pretraining.PhaseConfig,
    "training": pretraining.PretrainingConfig,
    "optimizer": OptimizerConfig,
    **SHARED,
}


@pytest.mark.parametrize(
    ("part", "key", "value"), [(part, *silly) for part, kind in PARTS.items() for silly in silly_values(kind)]
)
def test_settings_of_pretraining(part: str, key: str, value: Any, pretraining_data: Path, tmp_path: Path) -> None:
    path = tmp_path / "silly.yaml"
    path.write_text(TINY_PRETRAINING, encoding="utf-8")
    is_number = not isinstance(value, (int, list)) and not math.isfinite(value)
    shown = f".{value}" if is_number else str(value)
    try:
        recipe = pretraining.load_pretrain_recipe(path, [f"{part}.{key}={shown}"])
    except RecipeError as error:
        assert key in str(error)
        return
    result = pretrain(recipe, pretraining_data, tmp_path / "run", device="cpu", show_progress=False)
    assert result is not None and all(math.isfinite(record.train["mlm_loss"]) for record in result.logs)


TUNING = IN_EPOCHS | {"optimizer": OptimizerConfig}
SILLY_TUNING = [(f"{part}.{key}", value) for part, kind in TUNING.items() for key, value in silly_values(kind)]


@pytest.mark.parametrize(("key", "value"), [*silly_values(TuningConfig), *SILLY_TUNING])
@pytest.mark.parametrize("task", ["afqmc", "msra"])
def test_settings_of_finetuning(task: str, key: str, value: Any, pretrained_folder: Path, tmp_path: Path) -> None:
    known = {"n_train": 8, "n_dev": 4, "training.n_epochs": 1, "batches.batch_size": 4, "optimizer.learning_rate": 1e-3}
    try:
        config = changed(TuningConfig(), known | {key: value})
    except RecipeError as error:
        assert key.partition(".")[0] in str(error) and "expected" in str(error)
        return
    (tmp_path / "msra").mkdir()
    (tmp_path / "msra" / "train.bmes").write_text("小 B-PER\n明 E-PER\n在 O\n\n" * 20, encoding="utf-8")
    data = load_task_data(get_task(task), tiny_tasks.pair_folder(tmp_path))
    result = finetune(data, pretrained_folder, tmp_path / "run", config=config, device="cpu", show_progress=False)
    assert all(math.isfinite(record.train["loss"]) for record in result.history)


TINY_PRETRAINING = """
name: silly
model: {n_layers: 1, n_heads: 2, width: 8, embedding_width: 4, position_width: 4, max_positions: 64}
short: {n_steps: 2, n_characters: 48, max_tokens: 65, batch_size: 4, micro_batch_size: 3}
long: {n_steps: 1, n_characters: 48, max_tokens: 65, batch_size: 2, micro_batch_size: 2}
schedule: {warmup: 1 steps}
training: {log_every: 1 steps, eval_every: 2 steps, n_eval_instances: 2}
"""


@pytest.fixture(scope="module")
def pretraining_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_corpus.data_folder(tmp_path_factory.mktemp("pretraining"), segment_words=True)


@pytest.fixture(scope="module")
def pretrained_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pretrained") / "model"
    tiny_tasks.pretrained(seed=1).save(folder)
    return folder
