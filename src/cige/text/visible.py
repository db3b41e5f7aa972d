"""Text as a terminal, an SVG or an HTML file can show it: nothing invisible, nothing that such a file cannot hold."""

from __future__ import annotations

import unicodedata

_SHAPES = {"\n": "↵", "\r": "↵", "\u2028": "↵", "\u2029": "↵", "\x85": "↵", "\t": "→"}


def visible(text: str) -> str:
    """`text` with each character that has no shape of its own replaced by one that has; the length never changes.

    Line breaks become ↵ and tabs →, other controls (a terminal would obey them, XML forbids them), lone surrogates and
    noncharacters U+FFFD, joiners and marks of writing direction (they would turn what follows) a middle dot.
    """
    if text.isprintable():  # the common case; spaces other than U+0020 are not printable to Python
        return text
    return "".join(map(_visible_char, text))


def _visible_char(char: str) -> str:
    if char.isprintable():
        return char
    if char in _SHAPES:
        return _SHAPES[char]
    return {"Zs": " ", "Cf": "·"}.get(unicodedata.category(char), "\ufffd")
