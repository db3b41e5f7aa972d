"""Train the tiny recipe and die by SIGKILL at a given step, in the middle of it: `killed_run.py DATA OUTPUT STEP`."""

import os
import signal
import sys

import tiny_run
import torch

from cige.training.train import train
from cige.training.trainer import LatticeTrainer

RECIPE = tiny_run.tiny_recipe(checkpoint_steps=3, average_weights=0.5)
SEED = 3


def main() -> None:
    torch.set_num_threads(1)
    data_dir, output, step = sys.argv[1:]
    ordinary = LatticeTrainer.compute_loss

    def compute_loss(self, *args, **kwargs):
        if self.state.global_step == int(step):
            os.kill(os.getpid(), signal.SIGKILL)
        return ordinary(self, *args, **kwargs)

    LatticeTrainer.compute_loss = compute_loss
    train(RECIPE, output, seed=SEED, data_dir=data_dir, device="cpu", show_progress=False)


if __name__ == "__main__":
    main()
