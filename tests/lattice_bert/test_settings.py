"""Every setting of pre-training and fine-tuning: a silly value is refused with its name, or it trains."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import tiny_corpus
import tiny_tasks
from invalid_settings import IN_EPOCHS, SHARED, silly_values

from cige.engine.settings import OptimizerConfig
from cige.errors import RecipeError
from cige.lattice_bert.encoder.network import LatticeBertConfig
from cige.lattice_bert.pretraining import recipe as pretraining
from cige.lattice_bert.pretraining.dataset import InstanceConfig
from cige.lattice_bert.pretraining.pretrain import pretrain
from cige.lattice_bert.tasks.config import TuningConfig
from cige.lattice_bert.tasks.finetune import finetune
from cige.lattice_bert.tasks.registry import get_task
from cige.lattice_bert.tasks.task_data import load_task_data
from cige.recipes.strict import changed

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
