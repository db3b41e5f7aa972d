"""A progress bar is for terminals."""

import io

import pytest
from rich.console import Console
from rich.progress import Progress

from cige.text.terminal_progress import TerminalProgress


@pytest.mark.parametrize(("is_terminal", "is_shown"), [(False, True), (True, False), (False, False)])
def test_nothing_is_written_where_no_bar_is_shown(monkeypatch, is_terminal, is_shown):
    # As rich did before version 14.3, also for bars that are disabled.
    monkeypatch.setattr(Progress, "stop", lambda bar: bar.console.print())
    console = Console(file=io.StringIO(), force_terminal=is_terminal)
    with TerminalProgress("reading", console=console, is_shown=is_shown) as bar:
        bar.update(bar.add_task("", total=2), completed=1)
    assert console.file.getvalue() == ""


def test_a_terminal_has_a_bar():
    console = Console(file=io.StringIO(), force_terminal=True)
    with TerminalProgress("reading", console=console) as bar:
        bar.update(bar.add_task("", total=2), completed=1)
    assert "reading" in console.file.getvalue()
