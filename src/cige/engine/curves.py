"""Curves: the records of a run for TensorBoard, where it is installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cige.engine.history import Record

FOLDER = "tensorboard"


class Curves:
    """Writes every figure of a record as one point of a curve.

    Args:
        folder: of the run.
        is_on: false writes nothing, as do all processes but one.
    """

    def __init__(self, folder: Path, *, is_on: bool):
        self._folder = folder / FOLDER
        self._is_on = is_on and find_spec("tensorboard") is not None
        self._writer: Any = None

    def start(self, step: int) -> None:
        """Open a file; points after `step`, written by a run that was cut off, are discarded."""
        if self._is_on:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(self._folder), purge_step=step + 1)

    def add(self, record: Record) -> None:
        """Add the figures of a record as `train/NAME` and `dev/NAME`."""
        if self._writer is not None:
            rate = {"learning_rate": record.learning_rate} if record.train else {}
            for group, values in (("train", rate | dict(record.train)), ("dev", record.scores)):
                for name, value in values.items():
                    self._writer.add_scalar(f"{group}/{name}", value, record.step)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
