"""A progress bar is for terminals."""

import io

import pytest
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

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


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_narrow_terminal_shows_how_much_is_done_and_how_long_it_takes(width):
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = TerminalProgress(*columns, "epoch 1/60  loss 16.7819  dev F1 63.31 (best 63.31)", console=console)
    bar.add_task("weibo-soft_lexicon", total=12345, completed=1200)
    console.print(bar.get_renderable())
    shown = console.file.getvalue()
    assert " 1200/12345 -:--:-- " in shown and shown.startswith("weibo") and " epoch" in shown
    assert shown.count("\n") == 1 and len(shown.rstrip("\n")) <= width
