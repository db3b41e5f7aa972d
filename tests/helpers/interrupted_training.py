"""Train the tiny recipe and die by SIGKILL in the middle of a step: `interrupted_training.py DATA OUTPUT STEP`."""

import sys

import stopping
import tiny_run
import torch

from cige.training.train import train

RECIPE = tiny_run.tiny_recipe(checkpoints__every="3 steps", average_weights=0.5)
SEED = 3


def main() -> None:
    torch.set_num_threads(1)
    data_dir, output, step = sys.argv[1:]
    with stopping.stopped_at(int(step), stopping.die):
        train(RECIPE, output, seed=SEED, data_dir=data_dir, device="cpu", show_progress=False)


if __name__ == "__main__":
    main()
