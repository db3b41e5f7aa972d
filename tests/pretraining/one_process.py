"""Pre-train the tiny recipe as a process of its own: `one_process.py FOLDER OUTPUT [KEY=VALUE ...] [--kill-at STEP]`.

FOLDER holds data/. With RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set it is one of several processes, as
torchrun would start them; with --kill-at it dies by SIGKILL in the middle of that step.
"""

import os
import signal
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))
import tiny_pretraining

from cige.pretraining import loop
from cige.pretraining.pretrain import pretrain


def main() -> None:
    torch.set_num_threads(1)
    folder, output, *rest = sys.argv[1:]
    kill_at = int(rest.pop()) if "--kill-at" in rest else -1
    overrides = dict(pair.split("=") for pair in rest if "=" in pair)
    ordinary = loop.PretrainLoop._step

    def step(self, *args, **kwargs):
        if self.history.step == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return ordinary(self, *args, **kwargs)

    loop.PretrainLoop._step = step
    recipe = tiny_pretraining.recipe(Path(folder), **overrides)
    pretrain(recipe, Path(folder) / "data", output, seed=tiny_pretraining.SEED, device="cpu", show_progress=False)


if __name__ == "__main__":
    main()
