"""F1 against speed of each system, one SVG figure for each data set."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from cige.leaderboard.table import BoardRow
from cige.reports.comparison_views import draw_f1_against_speed


def figures_of(board: Mapping[str, Sequence[BoardRow]]) -> dict[str, str]:
    """An SVG figure for each data set of a board (`board_of`), as text to be put into an HTML page."""
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for data, rows in board.items():
            path = Path(folder) / f"{data}.svg"
            draw_f1_against_speed(rows, path)
            drawn = path.read_text(encoding="utf-8")
            drawn = re.sub(r"<metadata>.*?</metadata>", "", drawn, flags=re.DOTALL)  # the time of drawing
            figures[data] = drawn[drawn.index("<svg") :]
    return figures
