"""Progress bars for reading a large file or processing a long text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, TimeRemainingColumn, TransferSpeedColumn

from cige.text.terminal_progress import TerminalProgress


@contextmanager
def read_bar() -> Iterator[Callable[[int, int], None]]:
    """Yield a callback for (bytes read, bytes of the file); after reading, the bar shows that the index is built."""
    columns = ("{task.description}", BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with TerminalProgress(*columns, TimeRemainingColumn()) as bar:
        task = bar.add_task("reading", total=None)

        def on_progress(n_read: int, n_bytes: int) -> None:
            description = "reading" if n_read < n_bytes else "building the index"
            bar.update(task, completed=n_read, total=n_bytes, description=description)

        yield on_progress


@contextmanager
def text_bar(n_chars: int) -> Iterator[Callable[[int, int], None]]:
    """Yield a callback for (characters done, characters of the text); texts under 1,000 characters show no bar."""
    columns = ("predicting without each word", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with TerminalProgress(*columns, is_shown=n_chars >= 1000) as bar:
        task = bar.add_task("", total=n_chars)
        yield lambda n_done, n_all: bar.update(task, completed=n_done, total=n_all)
