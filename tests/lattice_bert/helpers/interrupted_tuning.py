"""Tune the tiny model on AFQMC and die by SIGKILL within a step: `interrupted_tuning.py MODEL DATA OUTPUT STEP`."""

import sys

import stopping
import tiny_tasks
import torch

from cige.lattice_bert.tasks.finetune import TuningResult, finetune
from cige.lattice_bert.tasks.registry import get_task
from cige.lattice_bert.tasks.task_data import load_task_data
from cige.recipes.strict import changed

CONFIG = changed(tiny_tasks.QUICK, {"training.n_epochs": 3, "checkpoints.every": "2 steps"})


def run(model: str, data: str, output: str) -> TuningResult:
    task = load_task_data(get_task("afqmc"), data)
    return finetune(task, model, output, config=CONFIG, seed=3, device="cpu", show_progress=False)


def main() -> None:
    torch.set_num_threads(1)
    *paths, step = sys.argv[1:]
    with stopping.stopped_at(int(step), stopping.die):
        run(*paths)


if __name__ == "__main__":
    main()
