"""Curves: the figures of a run for TensorBoard, where it is installed."""

from __future__ import annotations

from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

FOLDER = "tensorboard"


class Curves:
    """Writes every number of a record as one point of a curve.

    Args:
        folder: of the run.
        is_on: false writes nothing, as do all processes but one.
    """

    def __init__(self, folder: Path, *, is_on: bool):
        self._folder = folder / FOLDER
        self._is_on = is_on and find_spec("tensorboard") is not None
        self._writer: Any = None

    def start(self, step: int) -> None:
        """Open a file; points after `step` that an earlier sitting wrote are taken back."""
        if self._is_on:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(self._folder), purge_step=step + 1)

    def add(self, group: str, record: Any) -> None:
        """Add the fields of a record (a dataclass with a `step`) as `group/field`."""
        if self._writer is not None:
            for name, value in asdict(record).items():
                if name != "step":
                    self._writer.add_scalar(f"{group}/{name}", value, record.step)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
