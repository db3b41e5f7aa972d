"""Windows over long documents: cores that partition the text, each with some context to read but not to answer for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

CORE = 256  # characters that a window answers for
CONTEXT = 64  # characters it also reads on either side of a cut; longer than nearly every name
SAFE_SHARE = 4  # after a sentence end, where no name runs on, a quarter of the context does

LINE_BREAKS = "\n\r\u2028\u2029"
_LINE = re.compile(f"[^{LINE_BREAKS}]*[{LINE_BREAKS}]*")  # a line with the breaks that end it
_SENTENCE_END = re.compile("[。！？!?；;…]+[”’\"'」』》）)]*")


@dataclass(frozen=True)
class Window:
    """A stretch of text to read at once.

    Attributes:
        start, end: [start, end), what is read, in code points of the whole text.
        core_start, core_end: the part of it that this window answers for: an entity belongs to the window in whose
            core it starts.
    """

    start: int
    end: int
    core_start: int
    core_end: int


def split_windows(text: str, *, core: int = CORE, context: int = CONTEXT) -> list[Window]:
    """Cut `text` into windows; the cores are its partition, in order. Linear in the length of the text.

    A line of at most `core` characters, its line breaks included, is one window. A longer one is cut after the last
    sentence end in the second half of each `core` characters, or without one after `core` characters; its windows
    read `context` characters more on either side, where there are as many, and a quarter of that beyond a sentence
    end. No window reads beyond its line, since a line break ends a heading, a list item or a message, and names
    seldom run over it.

    Raises:
        ValueError: `core` below 1 or `context` below 0.
    """
    if core < 1 or context < 0:
        raise ValueError(f"given core={core}, context={context}; expected core >= 1 and context >= 0")
    windows = []
    for line in _LINE.finditer(text):
        line_start, line_end = line.span()
        start, before = line_start, 0
        while start < line_end:
            end, is_sentence_end = _core_end(text, start, line_end, core)
            after = context // SAFE_SHARE if is_sentence_end else context
            windows.append(Window(max(line_start, start - before), min(line_end, end + after), start, end))
            start, before = end, after
    return windows


def _core_end(text: str, start: int, line_end: int, core: int) -> tuple[int, bool]:
    """Where a core ends that begins at `start`, and whether a sentence ends there."""
    furthest = start + core
    if furthest >= line_end:
        return line_end, False
    ends = [match.end() for match in _SENTENCE_END.finditer(text, start + core // 2, furthest)]
    return (ends[-1], True) if ends else (furthest, False)


def overlapping_windows(n: int, n_at_once: int) -> list[tuple[int, int, int, int]]:
    """Windows [start, end) over n units for a model with room for `n_at_once`, half of each shared with its neighbours.

    Each tuple is (start, end, first, last): units [first, last) are the window's own, those that it sees with more
    context than its neighbours do. These are a partition of [0, n).
    """
    if n <= n_at_once:
        return [(0, n, 0, n)] if n else []
    starts = [*range(0, n - n_at_once, max(1, n_at_once // 2)), n - n_at_once]
    cuts = [0, *((a + n_at_once + b) // 2 for a, b in pairwise(starts)), n]  # the middle of what two windows share
    return [(start, start + n_at_once, *cut) for start, cut in zip(starts, pairwise(cuts), strict=True)]
