"""Offsets in UTF-16 code units, as JavaScript, Java and C# count them, for offsets in code points."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from itertools import compress


def utf16_offsets(text: str) -> Callable[[int], int]:
    """A function from an offset into `text` in code points, 0 to len(text), to the same place in UTF-16 code units.

    A character beyond U+FFFF takes two units; a lone surrogate is one.
    """
    if text.isascii() or (text and max(text) <= "\uffff"):
        return int
    pairs = list(compress(range(len(text)), (char > "\uffff" for char in text)))
    return lambda offset: offset + bisect_left(pairs, offset)
