"""Make text displayable in terminals, SVG and HTML: replace invisible and invalid characters."""

from __future__ import annotations

import unicodedata

_SHAPES = {"\n": "↵", "\r": "↵", "\u2028": "↵", "\u2029": "↵", "\x85": "↵", "\t": "→"}


def visible(text: str) -> str:
    """Replace each invisible character of `text` by a visible one; the length never changes.

    Line breaks become ↵ and tabs →, other control characters (which terminals interpret and XML forbids), lone
    surrogates and noncharacters U+FFFD, and joiners and marks of writing direction (which affect the following text) a
    middle dot.
    """
    if text.isprintable():  # the common case; spaces other than U+0020 are not printable to Python
        return text
    return "".join(map(_visible_char, text))


def one_line(message: str, most: int = 600) -> str:
    """A message on one line of at most `most` characters, however long the values are that it quotes from a file.

    Line breaks and invisible characters are shown as in `visible`; of a longer message, the middle is left out.
    """
    message = visible(message.strip())
    half = most // 2
    return message if len(message) <= most else f"{message[: half - 1]} … {message[-half + 2 :]}"


def _visible_char(char: str) -> str:
    if char.isprintable():
        return char
    if char in _SHAPES:
        return _SHAPES[char]
    return {"Zs": " ", "Cf": "·"}.get(unicodedata.category(char), "\ufffd")
