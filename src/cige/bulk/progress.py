"""Progress of a job: rows done, rows per second and remaining time, as a bar or, without a terminal, as lines."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn

from cige.text.counted import counted
from cige.text.terminal_progress import TerminalProgress

SECONDS_PER_LINE = 30


class JobProgress:
    """Shows progress on standard error.

    Args:
        n_rows: number of rows of the job.
        n_done: number of rows that were finished before.
        prints_lines: whether to print a line from time to time where there is no terminal. An engine that reports all
            parts at the end has no rate until then.
    """

    def __init__(self, n_rows: int, n_done: int = 0, *, prints_lines: bool = True):
        self._console = Console(stderr=True, highlight=False)
        columns = ("annotating", BarColumn(), MofNCompleteColumn(), "rows  {task.fields[rate]}")
        self._bar = TerminalProgress(*columns, TimeRemainingColumn(), console=self._console)
        self._task = self._bar.add_task("", total=n_rows, completed=n_done, rate="")
        self._n_rows, self._n_done, self._n_new = n_rows, n_done, 0
        self._prints_lines = prints_lines and not self._console.is_terminal
        self._begun = self._shown_at = time.monotonic()

    def __enter__(self) -> JobProgress:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    @property
    def rows_per_second(self) -> float:
        """Rows per second of this run, including the start of the workers."""
        return self._n_new / max(1e-9, time.monotonic() - self._begun)

    def add(self, n_rows: int) -> None:
        self._n_new += n_rows
        self._n_done += n_rows
        rate = self.rows_per_second
        self._bar.update(self._task, completed=self._n_done, rate=f"{rate:,.0f} rows per second")
        now = time.monotonic()
        if self._prints_lines and now - self._shown_at >= SECONDS_PER_LINE:
            self._shown_at = now
            minutes = (self._n_rows - self._n_done) / max(rate, 1e-9) / 60
            self._console.print(
                f"{self._n_done:,} of {counted(self._n_rows, 'row')}, {rate:,.0f} rows per second, "
                f"{minutes:,.0f} minutes left",
                soft_wrap=True,
            )
