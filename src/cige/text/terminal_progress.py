"""TerminalProgress: a progress bar of rich that writes nothing where there is no terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.progress import Progress, ProgressColumn


class TerminalProgress(Progress):
    """A progress bar on standard error, if that is a terminal.

    Args:
        columns: as of `rich.progress.Progress`, as are the `options`.
        console: where to write, if not to standard error.
        is_shown: False shows no bar in a terminal either.
    """

    def __init__(
        self, *columns: str | ProgressColumn, console: Console | None = None, is_shown: bool = True, **options: Any
    ):
        console = console or Console(stderr=True)
        super().__init__(*columns, console=console, disable=not (is_shown and console.is_terminal), **options)

    def stop(self) -> None:
        if not self.disable:  # before version 14.3, rich would write an empty line
            super().stop()
