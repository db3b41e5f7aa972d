"""Train the tiny tagger and fine-tune on a tiny task, in one process or as one of several.

A folder holds tagging/, the data of tiny_run.py, and pairs/ and model/, those of tiny_tasks.py.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import tiny_run
import torch
from tiny_tasks import QUICK

from cige.lattice_bert.tasks.finetune import TuningResult, finetune
from cige.lattice_bert.tasks.registry import get_task
from cige.lattice_bert.tasks.task_data import load_task_data
from cige.training.train import TrainResult, train

# Without dropout, which each process draws by itself. 64 sentences in batches of 9: the last one has a single sentence.
RECIPE = tiny_run.tiny_recipe(
    n_epochs=2,
    batches__batch_size=9,
    model__embed_dropout_prob=0.0,
    model__word_dropout_prob=0.0,
    model__output_dropout_prob=0.0,
    model__ff_dropout_prob=0.0,
    average_weights=0.5,
)
CONFIG = replace(QUICK, dropout_prob=0.0, gradient_checkpointing=True)
OPTIONS = {"seed": 3, "device": "cpu", "show_progress": False}


def both(folder: Path, output: Path) -> tuple[TrainResult, TuningResult]:
    torch.set_num_threads(1)
    tagger = train(RECIPE, output / "tagger", data_dir=folder / "tagging", **OPTIONS)
    data = load_task_data(get_task("afqmc"), folder / "pairs")
    return tagger, finetune(data, folder / "model", output / "tuned", config=CONFIG, **OPTIONS)
