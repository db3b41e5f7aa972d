"""Train the tiny tagger and fine-tune on a tiny task, as one of several processes: `several_processes.py FOLDER`.

FOLDER holds tagging/, the data of tests/tiny_run.py, and pairs/ and model/, those of tests/tasks/tiny_tasks.py; results
go to FOLDER/shared.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import torch

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
import tiny_run  # noqa: E402
from tiny_tasks import QUICK  # noqa: E402

from cige.tasks.finetune import TuningResult, finetune  # noqa: E402
from cige.tasks.registry import get_task  # noqa: E402
from cige.tasks.task_data import load_task_data  # noqa: E402
from cige.training.train import TrainResult, train  # noqa: E402

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
    """Train and fine-tune, in this process or as one of several."""
    tagger = train(RECIPE, output / "tagger", data_dir=folder / "tagging", **OPTIONS)
    data = load_task_data(get_task("afqmc"), folder / "pairs")
    return tagger, finetune(data, folder / "model", output / "tuned", config=CONFIG, **OPTIONS)


if __name__ == "__main__":
    torch.set_num_threads(1)
    both(Path(sys.argv[1]), Path(sys.argv[1]) / "shared")
