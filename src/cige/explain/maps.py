"""Draw attention maps as heat maps: as SVG, with the mean of the heads large and each head small, and in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.style import Style
from rich.text import Text

from cige.drawing.colours import colour_of
from cige.drawing.lattice import Mark
from cige.drawing.svg import SOFT, escape, svg_page, svg_text, text_width
from cige.explain.attention import WORDS_READ, AttentionMap
from cige.text.visible import visible

MAX_SIDE = 100  # the largest number of rows or columns that is legible
CELL, HEAD_CELL, LABEL_SIZE = 24, 6, 15
_STOPS = np.array([[255, 255, 255], [219, 234, 254], [96, 165, 250], [37, 99, 235], [23, 37, 84]])  # white to deep blue
_SHADES = 48  # number of shades in the map of one head, which is drawn shade by shade
_GRID = "#cbd5e1"
_TERMINAL_CELL = 3  # columns: two digits and a space


def draw_map(drawn: AttentionMap, marks: Sequence[Mark] = ()) -> str:
    """One map as a self-contained SVG: the mean of the heads with labels, and next to it each head.

    The characters of `marks`, entities of the text, are coloured in the labels of rows and columns.
    """
    margin, head_height = 20.0, 50.0
    reason = reason_not_drawn(drawn)
    if reason is not None:
        shown = svg_text(reason, margin, margin + 11, size=12, colour=SOFT, anchor="start")
        return svg_page(2 * margin + text_width(reason, 12), 2 * margin + 12, shown, title=drawn.name)
    heading = f"{drawn.name} (characters {drawn.start} to {drawn.start + len(drawn.rows)})"
    parts = [
        svg_text(heading, margin, margin + 14, size=15, anchor="start", weight="600"),
        svg_text(map_caption(drawn), margin, margin + 34, size=12, colour=SOFT, anchor="start"),
    ]
    mean, stacked = drawn.mean, max(map(len, drawn.columns))
    left, top = margin + CELL + 6, margin + head_height + stacked * (LABEL_SIZE + 1) + 6
    right, bottom = left + CELL * mean.shape[1], top + CELL * mean.shape[0]
    parts += _labels(drawn, marks, left, top)
    parts.append(_cells(drawn, mean, left, top))
    parts.append(_scale(mean, left, bottom + 10))
    end = max(right, left + 200, margin + text_width(map_caption(drawn), 12), margin + text_width(heading, 15))
    if len(drawn.heads) > 1:
        heads_right, heads_bottom = _heads(parts, drawn.heads, right + 36, top)
        end, bottom = max(end, heads_right), max(bottom, heads_bottom - 26)
    return svg_page(end + margin, bottom + 26 + margin, "".join(parts), title=drawn.name)


def reason_not_drawn(drawn: AttentionMap) -> str | None:
    """The message that is shown instead of a map that cannot be drawn, or None if it can be drawn."""
    n_rows, n_columns = drawn.heads.shape[1:]
    if not n_columns:
        return f"{drawn.name}: no words were matched in this text."
    if max(n_rows, n_columns) > MAX_SIDE:
        return (
            f"{drawn.name}: {n_rows:,} {drawn.asking} by {n_columns:,} {drawn.answering} are too many to draw (up to "
            f"{MAX_SIDE}); explain a sentence by itself, or take the figures from the JSON form."
        )
    return None


def map_caption(drawn: AttentionMap) -> str:
    """One line that describes the rows and columns."""
    if drawn.name == WORDS_READ:
        return "rows: characters; columns: the share of each word in their input (the rest is characters)"
    n_heads = len(drawn.heads)
    heads = f"; mean of {n_heads} heads" if n_heads > 1 else ""
    return f"rows (queries): {drawn.asking}; columns (keys): {drawn.answering}; each row sums to 100%{heads}"


def shares_of(weights: np.ndarray) -> np.ndarray:
    """Scale the weights to 0..1 between the smallest and the largest, so that even flat attention shows a pattern."""
    low, high = float(weights.min()), float(weights.max())
    return (weights - low) / ((high - low) or 1.0)


def shade(share: float) -> tuple[int, int, int]:
    """The colour of a weight that `shares_of` scaled."""
    place = min(1.0, max(0.0, share)) * (len(_STOPS) - 1)
    low = min(int(place), len(_STOPS) - 2)
    red, green, blue = (_STOPS[low] + (place - low) * (_STOPS[low + 1] - _STOPS[low])).round().astype(int).tolist()
    return red, green, blue


# ---- SVG


def _labels(drawn: AttentionMap, marks: Sequence[Mark], left: float, top: float) -> list[str]:
    parts = []
    for mark in marks:
        first, last = max(0, mark.start - drawn.start), min(len(drawn.rows), mark.end - drawn.start)
        if last <= first:
            continue
        length = CELL * (last - first)
        ground = f'fill="{colour_of(mark.label)}" fill-opacity="0.22"><title>{escape(mark.label)}</title></rect>'
        parts.append(f'<rect x="{left - CELL - 4:.1f}" y="{top + CELL * first:.1f}" width="{CELL}" height="{length}" ')
        parts.append(ground)
        if drawn.answering != "words":
            x, y = left + CELL * first, top - LABEL_SIZE - 9
            parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{length}" height="{LABEL_SIZE + 6}" {ground}')
    for row, label in enumerate(drawn.rows):
        y = top + CELL * (row + 0.5) + LABEL_SIZE * 0.36
        parts.append(svg_text(label, left - CELL / 2 - 4, y, size=LABEL_SIZE, room=CELL))
    for column, label in enumerate(drawn.columns):
        for k, char in enumerate(reversed(label)):  # written vertically, from the top down to the cells
            y = top - 8 - k * (LABEL_SIZE + 1)
            parts.append(svg_text(char, left + CELL * (column + 0.5), y, size=LABEL_SIZE, room=CELL))
    return parts


def _cells(drawn: AttentionMap, weights: np.ndarray, left: float, top: float) -> str:
    parts = []
    for (row, column), share in np.ndenumerate(shares_of(weights)):
        note = f"{drawn.rows[row]} → {drawn.columns[column]}  {float(weights[row, column]):.1%}"
        parts.append(
            f'<rect x="{left + CELL * column:.1f}" y="{top + CELL * row:.1f}" width="{CELL}" height="{CELL}" '
            f'fill="{_hex(share)}"><title>{escape(note)}</title></rect>'
        )
    return "".join(parts) + _frame(left, top, CELL * weights.shape[1], CELL * weights.shape[0])


def _scale(weights: np.ndarray, left: float, top: float) -> str:
    steps = "".join(
        f'<rect x="{left + 40 + 5 * k:.1f}" y="{top:.1f}" width="5" height="10" fill="{_hex(k / 19)}"/>'
        for k in range(20)
    )
    zero = svg_text(f"{weights.min():.1%}", left + 34, top + 9.5, size=11, colour=SOFT, anchor="end")
    most = svg_text(f"{weights.max():.1%}", left + 146, top + 9.5, size=11, colour=SOFT, anchor="start")
    return zero + steps + _frame(left + 40, top, 100, 10) + most


def _heads(parts: list[str], heads: np.ndarray, left: float, top: float) -> tuple[float, float]:
    """Draw each head small, in up to three columns no taller than the large map; returns the right and lower edge."""
    n_heads, n_rows, n_columns = heads.shape
    width, height = max(HEAD_CELL * n_columns, 46), HEAD_CELL * n_rows + 24
    down = min(n_heads, max(2, int(CELL * n_rows / height)))
    for k, head in enumerate(shares_of(heads)):
        x, y = left + (k // down) * (width + 18), top + (k % down) * height
        parts.append(svg_text(f"head {k + 1}", x, y - 4, size=11, colour=SOFT, anchor="start"))
        parts.append(_small_cells(head, x, y))
    across = -(-n_heads // down)
    bottom, span = top + down * height - 12, f"heads: {heads.min():.1%} to {heads.max():.1%}"
    parts.append(svg_text(span, left, bottom + 8, size=11, colour=SOFT, anchor="start"))
    return left + max(across * (width + 18) - 18, text_width(span, 11)), bottom + 12


def _small_cells(shares: np.ndarray, left: float, top: float) -> str:
    """Draw the cells of each shade as one path; cells with almost no weight stay white."""
    levels = np.round(shares * _SHADES).astype(int)
    parts = []
    for level in np.unique(levels[levels > 0]).tolist():
        squares = "".join(
            f"M{left + HEAD_CELL * column:.1f} {top + HEAD_CELL * row:.1f}h{HEAD_CELL}v{HEAD_CELL}h{-HEAD_CELL}z"
            for row, column in np.argwhere(levels == level).tolist()
        )
        parts.append(f'<path d="{squares}" fill="{_hex(level / _SHADES)}"/>')
    return "".join(parts) + _frame(left, top, HEAD_CELL * shares.shape[1], HEAD_CELL * shares.shape[0])


def _frame(left: float, top: float, width: float, height: float) -> str:
    return (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" fill="none" stroke="{_GRID}"/>'
    )


def _hex(share: float) -> str:
    return "#{:02x}{:02x}{:02x}".format(*shade(share))


# ---- terminal


class TerminalMap:
    """A map in a terminal: per cent in each cell, coloured if the terminal has colours; wide maps in several parts."""

    def __init__(self, drawn: AttentionMap):
        self._drawn = drawn

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        drawn = self._drawn
        yield Text(f"\n{drawn.name}", style="italic")
        reason = reason_not_drawn(drawn)
        if reason is not None:
            yield Text(reason, style="dim")
            return
        yield Text(f"{map_caption(drawn)}; cells in per cent", style="dim")
        mean, shares = drawn.mean, shares_of(drawn.mean)
        step = max(1, (options.max_width - _TERMINAL_CELL - 1) // _TERMINAL_CELL)
        for first in range(0, mean.shape[1], step):
            columns = slice(first, first + step)
            if first:
                yield Text("")
            yield from _heading(drawn.columns[columns])
            for row, label in enumerate(drawn.rows):
                yield _terminal_row(label, mean[row, columns], shares[row, columns])


def _heading(columns: Sequence[str]) -> list[Text]:
    """The labels of the columns, written vertically, each ending above its cells."""
    labels = [visible(label) for label in columns]
    height = max(map(len, labels))
    rows = zip(*(label.rjust(height) for label in labels), strict=True)
    return [Text(" " * _TERMINAL_CELL + "".join(map(_padded, cells)), no_wrap=True) for cells in rows]


def _terminal_row(label: str, weights: np.ndarray, shares: np.ndarray) -> Text:
    line = Text(_padded(visible(label)), no_wrap=True)
    for weight, share in zip(weights.tolist(), shares.tolist(), strict=True):
        red, green, blue = shade(share)
        ink = "black" if share < 0.5 else "white"
        per_cent = min(99, round(100 * weight))
        style = Style.parse(f"{ink} on #{red:02x}{green:02x}{blue:02x}")
        line.append(f"{per_cent or '·':>{_TERMINAL_CELL - 1}} ", style=style)
    return line


def _padded(char: str) -> str:
    return " " * (_TERMINAL_CELL - 1 - cell_len(char)) + char + " "
