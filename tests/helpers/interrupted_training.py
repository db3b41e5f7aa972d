"""Train the tiny recipe and die by SIGKILL in the middle of a step."""

from pathlib import Path

import stopping
import tiny_run
import torch

from cige.training.train import train

RECIPE = tiny_run.tiny_recipe(checkpoints__every="3 steps", average_weights=0.5)
SEED = 3


def train_until(step: int, data_dir: Path, output: Path) -> None:
    torch.set_num_threads(1)
    with stopping.stopped_at(step, stopping.die):
        train(RECIPE, output, seed=SEED, data_dir=data_dir, device="cpu", show_progress=False)
