"""A text in HTML with its entities marked, in the colours of the drawings."""

from __future__ import annotations

import html
from collections.abc import Iterable

from cige.drawing.colours import colour_of
from cige.drawing.lattice import Mark, outermost
from cige.text.visible import visible


def highlighted(text: str, marks: Iterable[Mark]) -> str:
    """The text as escaped HTML, with each marked span as `<b>` with its label; line breaks are preserved.

    Of two marks that overlap, one is marked (`outermost`).
    """
    parts, last = [], 0
    for mark in outermost(marks):
        colour = colour_of(mark.label)
        parts.append(escape_lines(text[last : mark.start]))
        marked = escape_lines(text[mark.start : mark.end])
        parts.append(
            f'<b style="background:{colour}1f;border-radius:4px;padding:1px 3px">{marked}'
            f'<sub style="color:{colour}">{escape_lines(mark.label)}</sub></b>'
        )
        last = mark.end
    return "".join([*parts, escape_lines(text[last:])])


def escape_lines(text: str) -> str:
    """Escape a text for HTML, with its line breaks kept and everything else made visible."""
    return "\n".join(html.escape(visible(line)) for line in text.split("\n"))


def notebook_page(text: str, marks: Iterable[Mark], *, note: str = "", max_chars: int = 20_000) -> str:
    """The HTML that a notebook displays for a text and its entities.

    Args:
        note: a line of text below, in grey.
        max_chars: maximum number of characters shown; if the text is longer, the note says so.
    """
    shown = list(marks)
    if len(text) > max_chars:
        shown = [mark for mark in shown if mark.end <= max_chars]
        note = " ".join(filter(None, (f"The first {max_chars:,} of {len(text):,} characters.", note)))
        text = f"{text[:max_chars]}…"
    below = f'<div style="color:#64748b;font-size:smaller">{html.escape(note)}</div>' if note else ""
    return f'<div style="line-height:2;white-space:pre-wrap">{highlighted(text, shown)}</div>{below}'
