"""Pre-train the tiny recipe in a process: `main` takes FOLDER OUTPUT [KEY=VALUE ...] [--kill-at STEP].

FOLDER holds data/. With RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set it is one of several processes, as torchrun
starts them; with --kill-at the last of them dies by SIGKILL in the middle of that step, unless torchrun has started it
again.
"""

import os
from pathlib import Path

import stopping
import tiny_pretraining
import torch

from cige.lattice_bert.pretraining.pretrain import pretrain


def main(folder: str, output: str, *arguments: str) -> None:
    torch.set_num_threads(1)
    rest = list(arguments)
    kill_at = int(rest.pop()) if "--kill-at" in rest else -1
    is_last = int(os.environ.get("RANK", "0")) + 1 == int(os.environ.get("WORLD_SIZE", "1"))
    if not is_last or os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0":
        kill_at = -1
    overrides = dict(pair.split("=") for pair in rest if "=" in pair)
    recipe = tiny_pretraining.recipe(Path(folder), **overrides)
    options = {"seed": tiny_pretraining.SEED, "device": "cpu", "show_progress": False}
    with stopping.stopped_at(kill_at, stopping.die):
        pretrain(recipe, Path(folder) / "data", output, **options)
