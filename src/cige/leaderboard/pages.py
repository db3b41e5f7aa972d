"""The pages of a leaderboard, in English and Chinese: Markdown, and one HTML file whose tables sort."""

from __future__ import annotations

import html
import re
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cige.drawing.figures import markdown_table
from cige.leaderboard.table import BoardRow
from cige.recipes.yaml_file import read_layer
from cige.reports.comparison import SPEED_BATCHES
from cige.reports.comparison_views import draw_f1_against_speed, mean_sd, shown_p
from cige.reports.significance import Difference

DATA_NAMES = {"weibo": "Weibo", "resume": "Resume", "ecommerce": "E-commerce", "cluener": "CLUENER", "msra": "MSRA"}
Board = Mapping[str, Sequence[BoardRow]]


@dataclass(frozen=True)
class Wording:
    """The texts of a page in one language (wording.yaml); `heads` are those of the columns of `_cells`."""

    language: str
    title: str
    introduction: str
    data: str
    with_test: str
    without_test: str
    heads: list[str]
    note: str
    best: str
    too_few: str
    differs: str
    open_cells: str
    explanation: str
    none_open: str

    def paper_of(self, row: BoardRow) -> str:
        """Why the score of a system is not that of its paper."""
        return "" if row.paper is None else row.paper.differs_zh if self.language == "zh" else row.paper.differs


WIDEST = 0.4
"""Intervals of differences that are wider than this, in F1, are not shown: they say only that more seeds are needed."""
_WORDING = read_layer(Path(__file__).with_name("wording.yaml"), called="wording.yaml").values
ENGLISH, CHINESE = (Wording(language, **_WORDING[language]) for language in ("en", "zh"))


def figures_of(board: Board) -> dict[str, str]:
    """F1 against speed of each system: an SVG figure for each data set, as text to be put into an HTML page."""
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for data, rows in board.items():
            path = Path(folder) / f"{data}.svg"
            draw_f1_against_speed(rows, path)
            drawn = path.read_text(encoding="utf-8")
            drawn = re.sub(r"<metadata>.*?</metadata>", "", drawn, flags=re.DOTALL)  # the time of drawing
            figures[data] = drawn[drawn.index("<svg") :]
    return figures


def markdown_page(board: Board, open_cells: Sequence[str], *, wording: Wording, links: str = "") -> str:
    """The page in Markdown, with `links` as a line below the title.

    Args:
        board: the rows of each data set (`board_of`).
        open_cells: names of the cells without a result, cheapest first.
    """
    parts = [f"# {wording.title}", *filter(None, [links]), wording.introduction]
    for data, rows in board.items():
        parts += [
            f"## {_heading(rows, data, wording)}",
            markdown_table(wording.heads, [_cells(row, wording) for row in rows]),
        ]
    parts += [wording.note, f"## {wording.differs}", "\n".join(f"- {line}" for line in _explanations(board, wording))]
    parts.append(_open_line(board, open_cells, wording))
    return "\n\n".join(parts) + "\n"


def html_page(
    board: Board, open_cells: Sequence[str], *, wording: Wording, figures: dict[str, str] | None = None
) -> str:
    """The page as one HTML file without other files; a click on the head of a column sorts the table by it.

    Args:
        board, open_cells: as in `markdown_page`.
        figures: an SVG figure for each data set, if there is one.
    """
    body = [f"<h1>{html.escape(wording.title)}</h1>", f"<p>{html.escape(wording.introduction)}</p>"]
    for data, rows in board.items():
        body.append(f"<h2>{html.escape(_heading(rows, data, wording))}</h2>")
        body.append(_html_table(wording.heads, [_cells(row, wording) for row in rows]))
        body.append((figures or {}).get(data, ""))
    body += [f"<p>{html.escape(wording.note)}</p>", f"<h2>{html.escape(wording.differs)}</h2>", "<ul>"]
    body += [f"<li>{html.escape(line).replace('`', '')}</li>" for line in _explanations(board, wording)]
    body += ["</ul>", f"<p>{html.escape(_open_line(board, open_cells, wording)).replace('`', '')}</p>"]
    template = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
    return (
        template.replace("{{language}}", wording.language)
        .replace("{{title}}", f"cige: {html.escape(wording.title)}")
        .replace("{{body}}", "\n".join(filter(None, body)))
    )


def _heading(rows: Sequence[BoardRow], data: str, wording: Wording) -> str:
    first = rows[0].results[0]
    split = wording.without_test if first.test_f1 is None else wording.with_test
    return wording.data.format(data=DATA_NAMES.get(data, data), n=f"{len(first.counts):,}", split=split)


def _cells(row: BoardRow, wording: Wording) -> list[str]:
    """The cells of a row, in the order of `wording.heads`; "-" where nothing was measured."""
    results = row.results
    paper = row.paper.scores.get(results[0].data) if row.paper else None
    gain = row.word_gain
    return [
        row.name,
        ", ".join(str(result.seed) for result in results),
        mean_sd([result.dev_f1 for result in results]),
        mean_sd(row.test),
        mean_sd([result.new_f1 for result in results]),
        "-" if paper is None else f"{paper:.2f}",
        wording.best if row.behind is None else _interval(row.behind, wording),
        "-" if row.behind is None else shown_p(row.behind.p_value),
        "-" if row.over_twin is None else _interval(row.over_twin, wording),
        "-" if gain is None else f"{100 * gain:+.1f}",
        *(f"{row.speed[size]:.0f}" for size in SPEED_BATCHES),
        f"{statistics.mean(r.megabytes for r in results):.0f}",
        f"{results[0].n_parameters / 1e6:.1f}M",
        f"{statistics.mean(r.seconds for r in results) / 60:.1f}",
    ]


def _interval(difference: Difference, wording: Wording) -> str:
    if difference.high - difference.low > WIDEST:
        return f"{100 * difference.value:.2f} [{wording.too_few}]"
    return f"{100 * difference.value:.2f} [{100 * difference.low:.2f}, {100 * difference.high:.2f}]"


def _explanations(board: Board, wording: Wording) -> list[str]:
    """A line per system that has a paper, in alphabetical order."""
    rows = {row.name: row for rows in board.values() for row in rows}
    return [
        wording.explanation.format(name=name, paper=row.paper.paper, differs=wording.paper_of(row))
        for name, row in sorted(rows.items())
        if row.paper
    ]


def _open_line(board: Board, open_cells: Sequence[str], wording: Wording) -> str:
    if not open_cells:
        return wording.none_open
    total = len(open_cells) + sum(len(row.results) for rows in board.values() for row in rows)
    shown = ", ".join(open_cells[:8]) + (" ..." if len(open_cells) > 8 else "")
    return wording.open_cells.format(n=len(open_cells), total=total, shown=shown)


def _html_table(heads: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    def line(tag: str, cells: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    rows = "\n".join(line("td", cells) for cells in body)
    table = f'<table class="sortable"><thead>{line("th", heads)}</thead><tbody>\n{rows}\n</tbody></table>'
    return f'<div class="wide">{table}</div>'
