"""Draw a lattice as SVG: characters in rows, words as bars over them, and marked spans as bars below."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cige.drawing.colours import colour_of
from cige.drawing.svg import SOFT, escape, is_wide, svg_page, svg_text, text_width
from cige.lattice.lattice import Lattice
from cige.text.counted import counted
from cige.text.given import whole_number

FAINT, BAR, BAR_EDGE, USER_EDGE = "#94a3b8", "#f1f5f9", "#cbd5e1", "#b45309"
MARGIN, GUTTER = 20, 34  # around the drawing; left of each row, for the offset of its first character
WIDE, NARROW = 34, 17  # cell widths of a Chinese and of a Latin character
LANE, BAR_HEIGHT = 28, 24  # words
CELL_HEIGHT, MARK_HEIGHT, ROW_GAP = 38, 20, 22


@dataclass(frozen=True)
class Mark:
    """A labelled span [start, end) to draw under the characters, with a short `note` such as its score."""

    start: int
    end: int
    label: str
    note: str = ""


def outermost(marks: Iterable[Mark]) -> list[Mark]:
    """The marks, sorted; of two that overlap, only the one that starts first, or else the longer."""
    outer: list[Mark] = []
    for mark in sorted(marks, key=lambda m: (m.start, -m.end)):
        if not outer or mark.start >= outer[-1].end:
            outer.append(mark)
    return outer


@dataclass(frozen=True)
class Emphasis:
    """How strongly to colour a word (0..1) in the colour of `label`; `note` is appended to the word's tooltip."""

    strength: float
    label: str
    note: str = ""


@dataclass
class _Row:
    """One row: characters [start, end), their left edges and the right edge of the last, and words by lane, upwards."""

    start: int
    end: int
    edges: list[float]
    lanes: list[list[int]] = field(default_factory=list)

    def left(self, position: int) -> float:
        return self.edges[min(max(position, self.start), self.end) - self.start]


def draw_lattice(
    lattice: Lattice,
    *,
    text: str | None = None,
    marks: Sequence[Mark] = (),
    emphasis: Mapping[int, Emphasis] | None = None,
    width: int = 1000,
    legend: bool = True,
) -> str:
    """Draw a lattice as one self-contained SVG.

    Args:
        text: the text as its author wrote it, with traditional or full-width characters; `lattice.text` if None.
        marks: spans to draw under the characters, of which `outermost` are drawn; a label has the same colour
            everywhere.
        emphasis: maps a row of `lattice.words` to how to colour it; other words are grey.
        width: width of the drawing in pixels; longer texts are broken into several rows.
        legend: explain the colours at the bottom.

    Returns:
        The file as a string, which a browser or a notebook shows.

    Raises:
        ValueError: `text` has another number of characters than the lattice, or `width` is not a whole number, 1 or
            more.
    """
    width = whole_number("width", width, least=1)
    if text is not None:
        if len(text) != lattice.n_chars:
            raise ValueError(
                f"given a text of {counted(len(text), 'character')}; expected the text of this lattice, which has "
                f"{lattice.n_chars:,}"
            )
        lattice = replace(lattice, text=text)
    emphasis, marks = emphasis or {}, outermost(marks)
    labels = sorted({m.label for m in marks} | {e.label for e in emphasis.values()})
    rows = _rows(lattice.text, width - 2 * MARGIN - GUTTER, _crossed(lattice, marks))
    for row, words in zip(rows, _words_of_rows(lattice, rows), strict=True):
        row.lanes = _lanes(lattice, row, words)

    parts: list[str] = []
    notes = _word_notes(lattice)
    top = float(MARGIN)
    for row in rows:
        top = _draw_row(parts, lattice, row, top, marks, emphasis, notes)
    used = max(row.edges[-1] for row in rows)
    if legend:
        top, legend_end = _draw_legend(parts, lattice, labels, top)
        used = max(used, legend_end)
    drawn_width = used + MARGIN if len(rows) == 1 else float(width)
    height = top - ROW_GAP + MARGIN
    return svg_page(drawn_width, height, "".join(parts), title=lattice.text[:80])


def _word_notes(lattice: Lattice) -> dict[int, str]:
    """Row of `lattice.words` -> the label that its user gave it, and whether it is forced."""
    labels = dict(lattice.labelled_words)
    return labels | {k: f"{labels.get(k, '')} forced".strip() for k in lattice.forced_words}


def _crossed(lattice: Lattice, marks: Sequence[Mark]) -> np.ndarray:
    """bool[T + 1]: whether a word or a mark crosses the boundary before each character."""
    n_chars = lattice.n_chars
    steps = np.zeros(n_chars + 2, np.int64)
    spans = np.array([[m.start, m.end] for m in marks], np.int64).reshape(-1, 2)
    for start, end in (lattice.words[:, :2].T, spans.T):
        np.add.at(steps, start + 1, 1)
        np.add.at(steps, end, -1)
    return steps.cumsum()[: n_chars + 1] > 0


def _rows(text: str, width: float, crossed: np.ndarray) -> list[_Row]:
    """Break a text into rows that fit `width`, between words where possible; a line break ends its row."""
    left = float(MARGIN + GUTTER)
    rows: list[_Row] = []
    start = 0
    while start < len(text) or not rows:
        edges, end = [left], start
        while end < len(text):
            after = edges[-1] + (WIDE if is_wide(text[end]) else NARROW)
            if after > left + width and end > start and text[end] != "\n":
                whole = [p for p in range(end, start + (end - start) // 2, -1) if not crossed[p]]
                end = whole[0] if whole else end
                break
            edges.append(after)
            end += 1
            if text[end - 1] == "\n":
                break
        rows.append(_Row(start, end, edges[: end - start + 1]))
        start = end
    return rows


def _words_of_rows(lattice: Lattice, rows: Sequence[_Row]) -> list[list[int]]:
    """The words that are visible in each row, found in one pass because words are sorted by start."""
    of_rows: list[list[int]] = [[] for _ in rows]
    first = 0
    for k, (start, end, _) in enumerate(lattice.words.tolist()):
        while rows[first].end <= start:
            first += 1
        row = first
        while row < len(rows) and rows[row].start < end:
            of_rows[row].append(k)
            row += 1
    return of_rows


def _lanes(lattice: Lattice, row: _Row, words: Sequence[int]) -> list[list[int]]:
    """Assign words to lanes without overlaps, short words next to the characters and longer ones above."""
    spans = lattice.words
    lanes: list[list[int]] = []
    taken: list[list[tuple[int, int]]] = []
    for k in sorted(words, key=lambda k: (spans[k, 1] - spans[k, 0], spans[k, 0], spans[k, 2])):
        start, end = max(int(spans[k, 0]), row.start), min(int(spans[k, 1]), row.end)
        for lane, used in zip(lanes, taken, strict=True):
            if all(end <= a or b <= start for a, b in used):
                lane.append(k)
                used.append((start, end))
                break
        else:
            lanes.append([k])
            taken.append([(start, end)])
    return lanes


def _draw_row(
    parts: list[str],
    lattice: Lattice,
    row: _Row,
    top: float,
    marks: Sequence[Mark],
    emphasis: Mapping[int, Emphasis],
    notes: Mapping[int, str],
) -> float:
    """Add one row's elements to `parts`; returns the top of the next row."""
    chars_top = top + LANE * len(row.lanes)
    for height, lane in enumerate(row.lanes):
        for k in lane:
            place = chars_top - LANE * (height + 1)
            parts.append(_word(lattice, row, k, place, emphasis.get(k), notes.get(k, "")))
    in_row = [m for m in marks if m.start < row.end and m.end > row.start]
    for mark in in_row:
        left, right = row.left(mark.start), row.left(mark.end)
        parts.append(
            f'<rect x="{left:.1f}" y="{chars_top + 2:.1f}" width="{right - left:.1f}" height="{CELL_HEIGHT - 4}" '
            f'fill="{colour_of(mark.label)}" fill-opacity="0.10"/>'
        )
    parts.append(_characters(lattice.text, row, chars_top))
    for mark in in_row:
        parts.append(_mark(row, mark, chars_top + CELL_HEIGHT))
    return chars_top + CELL_HEIGHT + (MARK_HEIGHT + 6 if marks else 0) + ROW_GAP


def _word(lattice: Lattice, row: _Row, k: int, top: float, emphasis: Emphasis | None, label: str) -> str:
    start, end, word = lattice.words[k].tolist()
    is_user = word >= lattice.n_base
    left, right = row.left(start) + 1.5, row.left(end) - 1.5
    text = lattice.text[max(start, row.start) : min(end, row.end)]
    colour = colour_of(emphasis.label) if emphasis else BAR_EDGE
    stroke = USER_EDGE if is_user else colour
    dash = ' stroke-dasharray="4 2"' if is_user else ""
    shape = _bar_path(left, right, top, BAR_HEIGHT, 6, open_left=start < row.start, open_right=end > row.end)
    tint = ""
    if emphasis:
        opacity = 0.08 + 0.6 * min(1.0, max(0.0, emphasis.strength))
        tint = f'<path d="{shape}" fill="{colour}" fill-opacity="{opacity:.2f}"/>'
    note = f"{lattice.text[start:end]}  [{start}, {end})" + ("  your own word" if is_user else "")
    note += f"  {label}" if label else ""
    note += f"  {emphasis.note}" if emphasis and emphasis.note else ""
    return (
        f'<g class="{"word own" if is_user else "word"}" data-word="{k}"><title>{escape(note)}</title>'
        f'<path class="bar" d="{shape}" fill="{BAR}"/>{tint}'
        f'<path class="edge" d="{shape}" fill="none" stroke="{stroke}"{dash}/>'
        + _word_text(text, label, left, right, top)
        + "</g>"
    )


def _word_text(text: str, label: str, left: float, right: float, top: float) -> str:
    """A word and, if there is room next to it, its label in small letters."""
    room, middle = right - left - 4, (left + right) / 2
    width, beside = text_width(text, 14), text_width(label, 9) + 5 if label else 0.0
    if not label or width + beside > room:
        return svg_text(text, middle, top + 17, size=14, room=room)
    first = middle - (width + beside) / 2
    shown = svg_text(text, first, top + 17, size=14, anchor="start")
    return shown + svg_text(label, first + width + 5, top + 16, size=9, colour=USER_EDGE, anchor="start")


def _bar_path(
    left: float, right: float, top: float, height: float, radius: float, *, open_left: bool, open_right: bool
) -> str:
    """A bar with round ends; an end at which the word continues in another row is straight."""
    a, b = (0.0 if open_left else radius), (0.0 if open_right else radius)
    bottom = top + height
    right_end = f"q{b:g} 0 {b:g} {b:g}V{bottom - b:.1f}q0 {b:g} {-b:g} {b:g}"
    left_end = f"q{-a:g} 0 {-a:g} {-a:g}V{top + a:.1f}q0 {-a:g} {a:g} {-a:g}"
    return f"M{left + a:.1f} {top:.1f}H{right - b:.1f}{right_end}H{left + a:.1f}{left_end}Z"


def _characters(text: str, row: _Row, top: float) -> str:
    cells = [
        svg_text(text[i], (row.left(i) + row.left(i + 1)) / 2, top + 27, size=22, room=row.left(i + 1) - row.left(i))
        for i in range(row.start, row.end)
        if not text[i].isspace() or text[i] in "\n\r"
    ]
    offset = svg_text(str(row.start), MARGIN + GUTTER - 10, top + 24, size=11, colour=FAINT, anchor="end")
    line = (
        f'<path d="M{row.edges[0]:.1f} {top + CELL_HEIGHT - 2:.1f}H{row.edges[-1]:.1f}" stroke="{BAR_EDGE}" '
        'stroke-width="1"/>'
    )
    return offset + line + "".join(cells)


def _mark(row: _Row, mark: Mark, top: float) -> str:
    left, right = row.left(mark.start) + 1.5, row.left(mark.end) - 1.5
    goes_on = mark.end > row.end
    shape = _bar_path(left, right, top, MARK_HEIGHT, 4, open_left=mark.start < row.start, open_right=goes_on)
    room = right - left - 4
    label = f"{mark.label} {mark.note}".strip()
    if text_width(label, 12) > room:  # the tooltip has the note as well
        label = mark.label
    title = f"{mark.label} [{mark.start}, {mark.end}) {mark.note}".strip()
    text = svg_text(label, (left + right) / 2, top + 14.5, size=12, colour="#ffffff", room=room, weight="600")
    return (
        f'<g class="mark" data-start="{mark.start}"><title>{escape(title)}</title>'
        f'<path d="{shape}" fill="{colour_of(mark.label)}"/>{text}</g>'
    )


def _draw_legend(parts: list[str], lattice: Lattice, labels: Sequence[str], top: float) -> tuple[float, float]:
    """Draw the legend; returns the top of the next row and the right edge of the legend."""
    left = float(MARGIN + GUTTER)
    items = []
    if not lattice.is_user.all():
        items.append(("word of the lexicon", BAR, BAR_EDGE, ""))
    if lattice.is_user.any():
        items.append(("your own word", BAR, USER_EDGE, ' stroke-dasharray="4 2"'))
    items += [(label, colour_of(label), colour_of(label), "") for label in labels]
    for name, fill, stroke, dash in items:
        parts.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" width="18" height="12" rx="3" fill="{fill}" stroke="{stroke}"{dash}/>'
            + svg_text(name, left + 24, top + 10.5, size=12, colour=SOFT, anchor="start")
        )
        left += 24 + text_width(name, 12) + 20
    if lattice.n_dropped:
        more = counted(lattice.n_dropped, "more word is", "more words are")
        note = f"{more} over the node budget and not in the lattice"
        parts.append(svg_text(note, left, top + 10.5, size=12, colour="#b91c1c", anchor="start"))
        left += text_width(note, 12) + 20
    return top + (12 + ROW_GAP if items or lattice.n_dropped else 0), left - 20
