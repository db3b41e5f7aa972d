"""ProgressBar: a progress bar of steps in a terminal, and one line per record in any output."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class ProgressBar:
    """Shows the progress in steps as a bar on standard error, if that is a terminal, and lines of scores.

    Args:
        is_shown: False shows nothing.
    """

    def __init__(self, name: str, n_steps: int, *, is_shown: bool = True):
        self._console = Console(stderr=True, quiet=not is_shown)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[scores]}"),
        )
        is_bar = is_shown and self._console.is_terminal
        self._bar = Progress(*columns, console=self._console, refresh_per_second=2, disable=not is_bar)
        self._task = self._bar.add_task(name, total=n_steps, scores="")
        self._name = name

    def start(self, step: int) -> None:
        self._bar.update(self._task, completed=step)
        self._bar.start()

    def update(self, step: int) -> None:
        self._bar.update(self._task, completed=step)

    def say(self, line: str) -> None:
        """Print a line above the bar, and show it next to the bar until the next line."""
        self._bar.update(self._task, scores=line)
        self._console.print(f"{self._name}  {line}", highlight=False, soft_wrap=True)

    def stop(self) -> None:
        self._bar.stop()
