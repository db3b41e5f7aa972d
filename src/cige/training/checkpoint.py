"""Weights on disk while a run is under way: only what training changes, written whole or not at all."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from cige.errors import ModelError
from cige.files import atomic_file

PREFIX = "checkpoint-"


def trained_weights(model: nn.Module) -> dict[str, Tensor]:
    """Name -> weight of every trainable parameter; fixed tables come back from the vector files."""
    return {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}


def save_weights(model: nn.Module, path: Path) -> None:
    weights = {name: weight.cpu().contiguous() for name, weight in trained_weights(model).items()}
    with atomic_file(path) as aside:
        save_file(weights, aside)


@torch.no_grad()
def load_weights(model: nn.Module, path: Path) -> None:
    """Fill the trainable parameters.

    Raises:
        ModelError: the file is missing, damaged or of another network.
    """
    try:
        found = load_file(path)
    except (OSError, SafetensorError) as reason:
        raise ModelError(f"{path}: weights cannot be read ({reason}); delete the run's folder and train again") from reason
    own = trained_weights(model)
    wrong = sorted(k for k in own.keys() | found.keys() if k not in own or k not in found or own[k].shape != found[k].shape)
    if wrong:
        raise ModelError(f"{path}: not the weights of this network; {wrong[0]} and {len(wrong) - 1} more do not fit")
    for name, weight in own.items():
        weight.copy_(found[name])


def checkpoints(folder: Path) -> list[Path]:
    """Checkpoint folders of a run, oldest first."""
    found = [p for p in folder.glob(f"{PREFIX}*") if p.is_dir() and p.name[len(PREFIX) :].isdigit()]
    return sorted(found, key=lambda p: int(p.name[len(PREFIX) :]))


def discard_checkpoints(folder: Path, *, keep: Path | None = None) -> None:
    """Delete all checkpoints but `keep`, and what a killed run left half written."""
    for path in checkpoints(folder):
        if keep is None or path.name != keep.name:
            shutil.rmtree(path, ignore_errors=True)
    for path in folder.glob(f".{PREFIX}*"):
        with suppress(OSError):
            shutil.rmtree(path)
