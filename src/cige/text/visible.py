"""Text as a terminal, an SVG or an HTML file can show it: nothing invisible, nothing that such a file cannot hold."""

from __future__ import annotations

import unicodedata

_BREAKS = {"\u2028": "↵", "\u2029": "↵", "\x85": "↵", "\x7f": "␡"}


def visible(text: str) -> str:
    """`text` with each character that has no shape of its own replaced by one that has; the length never changes.

    Control characters become their pictures (a terminal would obey them, XML forbids them), other controls, lone
    surrogates and noncharacters U+FFFD, and marks of writing direction a middle dot (they would turn what follows).
    """
    if text.isprintable():  # the common case; spaces other than U+0020 are not printable to Python
        return text
    return "".join(map(_visible_char, text))


def _visible_char(char: str) -> str:
    if char.isprintable():
        return char
    if char < " ":
        return chr(0x2400 + ord(char))
    if char in _BREAKS:
        return _BREAKS[char]
    category = unicodedata.category(char)
    if category == "Zs":
        return " "
    if category == "Cf":  # joiners and direction marks
        return "·"
    return "\ufffd"
