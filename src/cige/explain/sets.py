"""Show the word sets of characters as a table: in a terminal, in HTML and as SVG (Table 4 of the DCSAN paper)."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from cige.drawing.colours import colour_of
from cige.drawing.lattice import BAR, BAR_EDGE, USER_EDGE, Mark
from cige.drawing.svg import SOFT, escape, svg_page, svg_text, text_width
from cige.explain.attention import CharacterSets, SetMember
from cige.text.visible import visible

HEADS = {"B": "B: begin here", "M": "M: run through", "E": "E: end here", "S": "S: the character"}
ABOUT = "Weights of the words in a character's four sets, in per cent; none: the special word of an empty set."
_WIDTHS = {"B": 210, "M": 260, "E": 210, "S": 110}  # widths of the drawing's columns in pixels
_LINE, _SIZE, _MARGIN, _LEFT = 24, 14, 20, 46


def terminal_table(word_sets: Sequence[CharacterSets]) -> Table:
    table = Table(title="word sets (* your own)", title_justify="left", box=box.SIMPLE_HEAD, caption=ABOUT)
    table.caption_justify = "left"
    table.add_column("from", justify="right", style="dim")
    table.add_column("")
    for head in HEADS.values():
        table.add_column(head, overflow="fold")
    for sets in word_sets:
        if not sets.char.isspace():
            cells = [Text("  ".join(_words(sets, name)), style="" if sets.sets[name] else "dim") for name in HEADS]
            table.add_row(str(sets.place), Text(visible(sets.char), style="bold"), *cells)
    return table


def html_table(word_sets: Sequence[CharacterSets], marks: Sequence[Mark] = ()) -> str:
    """A heading and a table; characters of entities are coloured."""
    colours = _colours(marks)
    rows = []
    for sets in word_sets:
        if sets.char.isspace():
            continue
        ground = f' style="background:{colours[sets.place]}38"' if sets.place in colours else ""
        cells = "".join(f"<td>{_html_set(sets, name)}</td>" for name in HEADS)
        rows.append(f'<tr><td class="n">{sets.place}</td><td{ground}>{escape(sets.char)}</td>{cells}</tr>')
    head = "".join(f"<th>{name}</th>" for name in ("", "", *HEADS.values()))
    return (
        f'<h2>Word sets</h2><p class="soft">{ABOUT}</p>'
        f'<div class="card"><table><tr>{head}</tr>{"".join(rows)}</table></div>'
    )


def draw_sets(word_sets: Sequence[CharacterSets], marks: Sequence[Mark] = ()) -> str:
    """The table as one self-contained SVG."""
    colours = _colours(marks)
    width = 2 * _MARGIN + _LEFT + sum(_WIDTHS.values())
    top = float(_MARGIN)
    parts = [svg_text("word sets", _MARGIN, top + 14, size=15, anchor="start", weight="600")]
    parts.append(svg_text(ABOUT, _MARGIN, top + 34, size=12, colour=SOFT, anchor="start"))
    top += 58
    left = float(_MARGIN + _LEFT)
    for name, head in HEADS.items():
        parts.append(svg_text(head, left, top, size=12, colour=SOFT, anchor="start"))
        left += _WIDTHS[name]
    top += 8
    for sets in word_sets:
        if not sets.char.isspace():
            top = _draw_row(parts, sets, top, width, colours.get(sets.place))
    return svg_page(width, top + _MARGIN, "".join(parts), title="word sets")


def _colours(marks: Sequence[Mark]) -> dict[int, str]:
    """Offset of a character of an entity -> the colour of its label."""
    return {k: colour_of(mark.label) for mark in marks for k in range(mark.start, mark.end)}


def _draw_row(parts: list[str], sets: CharacterSets, top: float, width: float, colour: str | None) -> float:
    """Draw the sets of one character; returns the top of the next row."""
    parts.append(f'<rect x="{_MARGIN}" y="{top:.1f}" width="{width - 2 * _MARGIN}" height="1" fill="{BAR_EDGE}"/>')
    left, n_lines = float(_MARGIN + _LEFT), 1
    for name in HEADS:
        x, line, right = left, 0, left + _WIDTHS[name] - 8
        for member in sets.sets[name]:
            shown, share = _shown(sets, member), f"{member.weight:.0%}"
            needed = text_width(shown, _SIZE) + text_width(share, 10) + 17
            if x > left and x + needed > right:
                x, line = left, line + 1
            parts.append(_chip(shown, share, x, top + 4 + _LINE * line, min(needed, right - x), member))
            x += needed + 6
        if not sets.sets[name]:
            parts.append(
                svg_text(f"none {sets.none[name]:.0%}", left, top + 18.5, size=11, colour=SOFT, anchor="start")
            )
        n_lines, left = max(n_lines, line + 1), left + _WIDTHS[name]
    height = _LINE * n_lines + 5
    if colour is not None:
        parts.append(
            f'<rect x="{_MARGIN}" y="{top + 1:.1f}" width="{_LEFT - 10}" height="{height - 1}" fill="{colour}" '
            'fill-opacity="0.22"/>'
        )
    parts.append(svg_text(sets.char, _MARGIN + (_LEFT - 10) / 2, top + 20.5, size=18, room=_LEFT - 12))
    return top + height


def _chip(word: str, share: str, left: float, top: float, width: float, member: SetMember) -> str:
    edge = f'stroke="{USER_EDGE}" stroke-dasharray="4 2"' if member.is_user else f'stroke="{BAR_EDGE}"'
    room = width - text_width(share, 10) - 15
    return (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="20" rx="5" fill="{BAR}" {edge}/>'
        + svg_text(word, left + 5, top + 15, size=_SIZE, anchor="start", room=room)
        + svg_text(share, left + width - 5, top + 14.5, size=10, colour=SOFT, anchor="end")
    )


def _words(sets: CharacterSets, name: str) -> list[str]:
    if not sets.sets[name]:
        return [f"none\xa0{sets.none[name]:.0%}"]
    return [
        f"{visible(_shown(sets, member))}{'*' if member.is_user else ''}\xa0{member.weight:.0%}"
        for member in sets.sets[name]
    ]


def _html_set(sets: CharacterSets, name: str) -> str:
    if not sets.sets[name]:
        return f'<span class="soft">none {sets.none[name]:.0%}</span>'
    return "".join(_html_member(sets, member) for member in sets.sets[name])


def _html_member(sets: CharacterSets, member: SetMember) -> str:
    kind = "word user" if member.is_user else "word"
    title = "the character itself" if member.word is None else f"[{member.word.start}, {member.word.end})"
    return (
        f'<span class="{kind}" title="{title}">{escape(_shown(sets, member))}<small>{member.weight:.0%}</small></span>'
    )


def _shown(sets: CharacterSets, member: SetMember) -> str:
    return sets.char if member.word is None else member.word.text
