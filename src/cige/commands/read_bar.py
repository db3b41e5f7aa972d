"""A bar on the terminal while a file of gigabytes is read: how much, how fast, how long still."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn


@contextmanager
def read_bar() -> Iterator[Callable[[int, int], None]]:
    """Yield what to call with (bytes read, bytes of the file); once all is read the bar says that an index is built."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("reading", total=None)

        def on_progress(n_read: int, n_bytes: int) -> None:
            description = "reading" if n_read < n_bytes else "building the index"
            bar.update(task, completed=n_read, total=n_bytes, description=description)

        yield on_progress
