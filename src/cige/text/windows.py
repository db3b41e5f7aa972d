"""Windows over long documents: what is read at once, and the core of it that a window answers for.

Three rules for three kinds of reader: `split_windows` cuts a text at its cells and sentences, `overlapping_windows`
gives each unit the most context, and `strided_windows` is what BERT does to find an answer in a long context.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from cige.text.cells import cells

WHOLE = 256  # characters of the longest stretch that is read at once
CORE = 108  # characters that a window of a longer one answers for
CONTEXT = 12  # characters it also reads behind a cut, where a name may run on, and half as many before one
OVERLAP = CONTEXT + CONTEXT // 2  # characters on both sides of a cut that both of its windows read
LONGEST = max(WHOLE, CORE + OVERLAP)  # no window that `split_windows` makes is longer
SAFE_SHARE = 4  # at a sentence end, where no name runs on, a quarter of the context does

SENTENCE_END = re.compile("[。！？!?；;…]+[”’\"'」』》）)]*")


@dataclass(frozen=True)
class Window:
    """A stretch of text to read at once.

    Attributes:
        start, end: [start, end), what is read, in code points of the whole text (or in word pieces of it).
        core_start, core_end: the part of it that this window answers for: an entity belongs to the window in whose
            core it starts.
    """

    start: int
    end: int
    core_start: int
    core_end: int


def split_windows(text: str, *, whole: int = WHOLE, core: int = CORE, context: int = CONTEXT) -> list[Window]:
    """Cut `text` into windows; the cores are its partition, in order. Linear in the length of the text.

    A cell (`cells`: a line, or a column of one) of at most `whole` characters, the whitespace that ends it included, is
    one window. A longer one is cut after the last sentence end in the second half of each `core` characters, or without
    one after `core` characters; its windows read `context` characters more behind them and half as many before them,
    where there are as many, and a quarter of that beyond a sentence end. No window reads beyond its cell: a line break
    ends a heading, a list item or a message, and a name in a column of a table is read better by itself than among its
    neighbours (docs/reading.md has the figures).

    Raises:
        ValueError: `core` below 1, or `whole` or `context` below 0.
    """
    if core < 1 or whole < 0 or context < 0:
        raise ValueError(
            f"given whole={whole}, core={core}, context={context}; expected core >= 1, and whole and context >= 0"
        )
    windows = []
    for cell_start, cell_end in cells(text):
        if cell_end - cell_start <= whole:
            windows.append(Window(cell_start, cell_end, cell_start, cell_end))
            continue
        start, before = cell_start, 0
        while start < cell_end:
            end, is_sentence_end = _core_end(text, start, cell_end, core)
            after = context // SAFE_SHARE if is_sentence_end else context
            windows.append(Window(max(cell_start, start - before), min(cell_end, end + after), start, end))
            start, before = end, after // 2
    return windows


def _core_end(text: str, start: int, cell_end: int, core: int) -> tuple[int, bool]:
    """Where a core ends that begins at `start`, and whether a sentence ends there."""
    furthest = start + core
    if furthest >= cell_end:
        return cell_end, False
    ends = [match.end() for match in SENTENCE_END.finditer(text, start + core // 2, furthest)]
    return (ends[-1], True) if ends else (furthest, False)


def overlapping_windows(n: int, n_at_once: int) -> list[Window]:
    """Windows over n units for a model with room for `n_at_once`, half of each shared with its neighbours.

    The core of a window is what it reads with more context than its neighbours do; cores are a partition of [0, n).
    """
    if n <= n_at_once:
        return [Window(0, n, 0, n)] if n else []
    starts = [*range(0, n - n_at_once, max(1, n_at_once // 2)), n - n_at_once]
    cuts = [0, *((a + n_at_once + b) // 2 for a, b in pairwise(starts)), n]  # the middle of what two windows share
    return [Window(start, start + n_at_once, *cut) for start, cut in zip(starts, pairwise(cuts), strict=True)]


def strided_windows(n: int, n_at_once: int, *, stride: int) -> list[Window]:
    """Windows of `n_at_once` units that begin `stride` units apart, as BERT reads long contexts; the last ends at n.

    Every unit is in a window, so a stride beyond `n_at_once` counts as that. The core of a window is all of it.
    Empty if n is 0.

    Raises:
        ValueError: `n_at_once` or `stride` is below 1.
    """
    if n_at_once < 1 or stride < 1:
        raise ValueError(f"given n_at_once={n_at_once}, stride={stride}; expected 1 or more of each")
    step = min(stride, n_at_once)
    n_windows = 1 + max(0, -(-(n - n_at_once) // step)) if n else 0
    bounds = [(k * step, min(n, k * step + n_at_once)) for k in range(n_windows)]
    return [Window(*bound, *bound) for bound in bounds]
