"""Cells: the parts of a text that are separated by whitespace, such as table columns, list items or lines."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

LINE_BREAKS = "\n\r\u2028\u2029"
COMMAS = frozenset(",，、")
_RUN = re.compile(r"\s\s*")  # is searched for in a quarter of the time of \s+, as it begins with a single character
# Scripts that are written without spaces: Chinese characters and kana; the first and the last of each block.
_UNSPACED = (
    ("\u3005", "\u3007"),
    ("\u3040", "\u30ff"),
    ("\u3400", "\u9fff"),
    ("\uf900", "\ufaff"),
    ("\U00020000", "\U0003ffff"),
)


def is_unbroken(text: str) -> bool:
    """Whether a text has characters, and none of them is whitespace; most sentences, and known at once."""
    return text.split(None, 1) == [text]


def cells(text: str) -> Iterator[tuple[int, int]]:
    """The cells of a text as [start, end), including the whitespace at their end; they are a partition of the text.

    A cell ends at a line break, a tab or another control character that is whitespace, or at two or more spaces. Tabs
    and spaces after a comma do not end a cell, since the sentence continues there.
    """
    start = 0
    for run in _RUN.finditer(text):
        if _ends_a_cell(text, run.start(), run.end()):
            yield start, run.end()
            start = run.end()
    if start < len(text):
        yield start, len(text)


def closed_whitespace(text: str) -> Iterator[tuple[int, int]]:
    """The whitespace that names cannot contain: all except single spaces next to a letter or digit of another script.

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
    """Whether a character is a letter or digit of a script that separates words by spaces, unlike Chinese."""
    return char.isalnum() and not any(first <= char <= last for first, last in _UNSPACED)
