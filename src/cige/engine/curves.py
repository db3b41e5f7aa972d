"""Curves: write the records of a run for TensorBoard, if it is installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from cige.engine.history import Record

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

FOLDER = "tensorboard"


class Curves:
    """Writes every value of a record as one point of a curve.

    Args:
        folder: folder of the run.
        is_on: False writes nothing, which is used for all processes except one.
    """

    def __init__(self, folder: Path, *, is_on: bool):
        self._folder = folder / FOLDER
        self._is_on = is_on and find_spec("tensorboard") is not None
        self._writer: SummaryWriter | None = None

    def start(self, step: int) -> None:
        """Open a file; points after `step`, which an interrupted run wrote, are discarded."""
        if self._is_on:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(self._folder), purge_step=step + 1)

    def add(self, record: Record) -> None:
        """Add the values of a record as `train/NAME` and `dev/NAME`."""
        if self._writer is not None:
            rate = {"learning_rate": record.learning_rate} if record.train else {}
            for group, values in (("train", rate | dict(record.train)), ("dev", record.scores)):
                for name, value in values.items():
                    self._writer.add_scalar(f"{group}/{name}", value, record.step)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
