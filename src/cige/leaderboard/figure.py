"""F1 against speed of each system, one SVG figure for each data set."""

from __future__ import annotations

import re
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cige.leaderboard.results import CellResult
from cige.leaderboard.table import BoardRow, rows_of
from cige.reports.comparison import Row
from cige.reports.comparison_views import draw_f1_against_speed


def figures_of(results: Sequence[CellResult]) -> dict[str, str]:
    """An SVG figure for each data set with results, as text to be put into an HTML page."""
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for data in sorted({result.data for result in results}):
            path = Path(folder) / f"{data}.svg"
            draw_f1_against_speed([_as_row(row) for row in rows_of(results, data)], path)
            drawn = path.read_text(encoding="utf-8")
            drawn = re.sub(r"<metadata>.*?</metadata>", "", drawn, flags=re.DOTALL)  # the time of drawing
            figures[data] = drawn[drawn.index("<svg") :]
    return figures


def _as_row(row: BoardRow) -> Row:
    """The row of `cige compare` with the same scores and speed."""
    results, behind = row.results, row.behind
    tests = [result.test_f1 for result in results if result.test_f1 is not None]
    return Row(
        name=row.system,
        architecture=results[0].architecture,
        seeds=[result.seed for result in results],
        dev=[result.dev_f1 for result in results],
        test=tests,
        span_f1=[],
        type_accuracy=[],
        n_parameters=results[0].n_parameters,
        seconds=[result.seconds for result in results],
        behind=None if behind is None else behind.value,
        behind_low=None if behind is None else behind.low,
        behind_high=None if behind is None else behind.high,
        p_value=None if behind is None else behind.p_value,
        p_covers_seeds=None if behind is None else behind.covers_seeds,
        speed={
            int(size): statistics.mean(result.sentences_per_second[size] for result in results)
            for size in results[0].sentences_per_second
        },
    )
