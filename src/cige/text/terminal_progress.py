"""TerminalProgress: a progress bar of rich for terminals, narrow ones too, which writes nothing where there is none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.table import Table
from rich.text import Text


class _ShorterText(TextColumn):
    """A text that is cut where the terminal is too narrow."""

    def render(self, task: Task) -> Text:
        text = super().render(task)
        text.no_wrap, text.overflow = True, "ellipsis"
        return text


class TerminalProgress(Progress):
    """A progress bar on standard error, if that is a terminal.

    Args:
        columns: as of `rich.progress.Progress`, as are the `options`; in a narrow terminal, strings and bars are cut.
        console: where to write, if not to standard error.
        is_shown: False shows no bar in a terminal either.
    """

    def __init__(
        self, *columns: str | ProgressColumn, console: Console | None = None, is_shown: bool = True, **options: Any
    ):
        console = console or Console(stderr=True)
        cut = [_ShorterText(column) if isinstance(column, str) else column for column in columns]
        super().__init__(*cut, console=console, disable=not (is_shown and console.is_terminal), **options)

    def make_tasks_table(self, tasks: Iterable[Task]) -> Table:
        """Bars and texts get narrower. rich would first cut how much is done and how long it takes."""
        table = super().make_tasks_table(tasks)
        for column, shown in zip(self.columns, table.columns, strict=True):
            shown.no_wrap = not isinstance(column, BarColumn | _ShorterText)
        return table

    def stop(self) -> None:
        if not self.disable:  # before version 14.3, rich would write an empty line
            super().stop()
