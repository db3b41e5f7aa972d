"""Tune the tiny model on AFQMC, and die by SIGKILL within a step."""

from pathlib import Path

import stopping
import tiny_tasks
import torch

from cige.lattice_bert.tasks.finetune import TuningResult, finetune
from cige.lattice_bert.tasks.registry import get_task
from cige.lattice_bert.tasks.task_data import load_task_data
from cige.recipes.strict import changed

CONFIG = changed(tiny_tasks.QUICK, {"training.n_epochs": 3, "checkpoints.every": "2 steps"})


def run(model: Path, data: Path, output: Path) -> TuningResult:
    task = load_task_data(get_task("afqmc"), data)
    return finetune(task, model, output, config=CONFIG, seed=3, device="cpu", show_progress=False)


def run_until(step: int, model: Path, data: Path, output: Path) -> None:
    torch.set_num_threads(1)
    with stopping.stopped_at(step, stopping.die):
        run(model, data, output)
