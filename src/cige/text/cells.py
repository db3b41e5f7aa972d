"""Cells: the stretches of a text that whitespace sets apart, as columns of a table, items of a list or lines."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

LINE_BREAKS = "\n\r\u2028\u2029"
COMMAS = frozenset(",，、")
_RUN = re.compile(r"\s+")
# Scripts that are written without spaces: Chinese characters and kana; the first and the last of each block.
_UNSPACED = (
    ("\u3005", "\u3007"),
    ("\u3040", "\u30ff"),
    ("\u3400", "\u9fff"),
    ("\uf900", "\ufaff"),
    ("\U00020000", "\U0003ffff"),
)


def cells(text: str) -> Iterator[tuple[int, int]]:
    """The cells of a text, [start, end) each with the whitespace that ends it; a partition of the text, in order.

    What ends a cell is a line break, a tab or any other control character that is a space, or two spaces or more.
    The sentence goes on beyond tabs and spaces that follow a comma, so there they end nothing.
    """
    start = 0
    for run in _RUN.finditer(text):
        if _ends_a_cell(text, run.start(), run.end()):
            yield start, run.end()
            start = run.end()
    if start < len(text):
        yield start, len(text)


def closed_whitespace(text: str) -> Iterator[tuple[int, int]]:
    """The whitespace that no name runs over: all but single spaces beside a letter or digit that is no Chinese one.

    "Bank of China" and "小米 14" are written with such spaces; 张三 李四 are two names.
    """
    for run in _RUN.finditer(text):
        start, end = run.span()
        if end - start > 1 or unicodedata.category(text[start]) != "Zs" or not _is_in_latin(text, start):
            yield start, end


def _ends_a_cell(text: str, start: int, end: int) -> bool:
    run = text[start:end]
    if end - start == 1 and unicodedata.category(run) == "Zs":
        return False
    if any(char in LINE_BREAKS for char in run):
        return True
    return start == 0 or text[start - 1] not in COMMAS


def _is_in_latin(text: str, place: int) -> bool:
    return any(0 <= k < len(text) and is_alphabetic(text[k]) for k in (place - 1, place + 1))


def is_alphabetic(char: str) -> bool:
    """Whether a character is a letter or digit of a script that sets its words apart by spaces, as Chinese does not."""
    return char.isalnum() and not any(first <= char <= last for first, last in _UNSPACED)
