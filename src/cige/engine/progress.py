"""What a run shows as it trains: a progress bar, a line per record, and curves for TensorBoard if it is installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn

from cige.engine.history import Record
from cige.text.terminal_progress import TerminalProgress

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


class ProgressBar:
    """Shows the progress in steps as a bar on standard error, if that is a terminal, and lines of scores."""

    def __init__(self, name: str, n_steps: int, *, is_shown: bool = True):
        self._console = Console(stderr=True, quiet=not is_shown)
        about, scores = "{task.description}", "{task.fields[scores]}"
        columns = about, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), scores
        self._bar = TerminalProgress(*columns, console=self._console, is_shown=is_shown, refresh_per_second=2)
        self._task = self._bar.add_task(escape(name), total=n_steps, scores="")
        self._name = name

    def start(self, step: int) -> None:
        self._bar.update(self._task, completed=step)
        self._bar.start()

    def update(self, step: int) -> None:
        self._bar.update(self._task, completed=step)

    def say(self, line: str) -> None:
        """Print a line above the bar, and show it next to the bar until the next line."""
        self._bar.update(self._task, scores=escape(line))
        self._console.print(f"{self._name}  {line}", highlight=False, markup=False, soft_wrap=True)

    def stop(self) -> None:
        self._bar.stop()


CURVES = "tensorboard"  # folder of the curves in that of a run


class Curves:
    """Writes every value of a record as one point of a curve.

    Args:
        folder: folder of the run.
        is_on: False writes nothing, which is used for all processes except one.
    """

    def __init__(self, folder: Path, *, is_on: bool):
        self._folder = folder / CURVES
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
