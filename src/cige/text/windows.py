"""Windows over long documents: the parts that are processed at once, and the core of each window.

There are three functions: `split_windows` divides a text at cells and sentences, `overlapping_windows` maximises the
context of each unit, and `strided_windows` is BERT's method for question answering in long contexts.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from cige.text.cells import LINE_BREAKS, cells, is_unbroken

WHOLE = 200  # maximum number of characters of a cell that is a single window
CORE = 108  # maximum number of characters of the core of a window of a longer cell
CONTEXT = 12  # characters of context after a cut, where a name may continue; half as many before a cut
OVERLAP = CONTEXT + CONTEXT // 2  # characters around a cut that both of its windows contain


class Cut(NamedTuple):
    """A kind of place where a cell is cut.

    Attributes:
        end: what the part before the cut ends with.
        at_least: the share of `core` that a part has at least if it ends here.
        context_share: the share of `context` that is read on the other side, where hardly a name continues.
    """

    end: re.Pattern[str]
    at_least: float
    context_share: float


CUTS = (
    Cut(re.compile("[。！？!?；;…]+[”’\"'」』》）)]*"), 3 / 8, 1 / 4),  # end of a sentence
    Cut(re.compile("[，、]|[：:,](?![0-9A-Za-z/])"), 9 / 16, 1 / 2),  # end of a clause
)
"""The first kind of which there is a place is used, and the first place of this kind."""
MAX_QUOTED = 40
QUOTED = re.compile("《[^《》]{1,40}》|〈[^〈〉]{1,40}〉|“[^“”]{1,40}”|「[^「」]{1,40}」|『[^『』]{1,40}』")
"""What may be a title or another name; a cell is cut within it only if there is no other place."""
MAX_WORD = 24  # characters by which a window is longer, on either side, where it would cut a Latin word
_IN_WORD = frozenset(string.ascii_letters + string.digits)


class Window(NamedTuple):
    """A part of a text that is processed at once.

    Attributes:
        start, end: half-open [start, end) of the window, in code points of the whole text (or in its word pieces).
        core_start, core_end: the core of the window: an entity belongs to the window in whose core it starts.
        is_short_cell: whether it is a short cell of a row of a table; only `table_cells` finds this out.
    """

    start: int
    end: int
    core_start: int
    core_end: int
    is_short_cell: bool = False


def split_windows(text: str, *, whole: int = WHOLE, core: int = CORE, context: int = CONTEXT) -> list[Window]:
    """Divide `text` into windows, whose cores are a partition of the text, in linear time.

    A cell (see `cells`: a line, or a column of a line) of at most `whole` characters, including the whitespace at its
    end, is one window. A longer cell is cut at the first of the `CUTS` or, if there is none, after `core` characters.
    Its windows have up to `context` further characters after them and half as many before them, a share of this at the
    end of a sentence or a clause, and the rest of a Latin word or number. Windows do not extend beyond their cell: a
    line break ends a heading, a list item or a message, and names in table columns are predicted better without their
    neighbours (see docs/reading.md for measurements). Raises a ValueError if `core` is below 1, or `whole` or `context`
    below 0.
    """
    if core < 1 or whole < 0 or context < 0:
        raise ValueError(
            f"given whole={whole}, core={core}, context={context}; expected core >= 1, and whole and context >= 0"
        )
    if len(text) <= whole and is_unbroken(text):
        return [Window(0, len(text), 0, len(text))]
    windows = []
    for cell_start, cell_end in cells(text):
        if cell_end - cell_start <= whole:
            windows.append(Window(cell_start, cell_end, cell_start, cell_end))
            continue
        start, before = cell_start, 0
        while start < cell_end:
            end, context_share = _core_end(text, start, cell_end, core)
            after = int(context * context_share)
            first = _edge(text, max(cell_start, start - before), cell_start, -1)
            last = _edge(text, min(cell_end, end + after), cell_end, 1)
            windows.append(Window(first, last, start, end))
            start, before = end, after // 2
    return windows


def table_cells(text: str, windows: Sequence[Window], n_short: int) -> list[Window]:
    """The windows of `split_windows`, in which the short cells of rows are marked, in linear time.

    A row is a line of several cells of which more than half have at most `n_short` characters, not counting whitespace
    at their end. In other lines, such as titles with a gap between their parts, no cell is marked.
    """
    if len(windows) < 2:  # no row
        return list(windows)
    marked: list[Window] = []
    line: list[Window] = []
    for window in windows:
        line.append(window)
        if window is windows[-1] or any(text[k] in LINE_BREAKS for k in _space_at_end(text, window)):
            is_short = [w.core_start == w.start and _n_read(text, w) <= n_short for w in line]
            is_row = len(line) > 1 and 2 * sum(is_short) > len(line)
            marked += [
                w._replace(is_short_cell=True) if is_row and s else w for w, s in zip(line, is_short, strict=True)
            ]
            line = []
    return marked


def _space_at_end(text: str, window: Window) -> range:
    return range(window.start + _n_read(text, window), window.core_end)


def _n_read(text: str, window: Window) -> int:
    return len(text[window.start : window.core_end].rstrip())


def _core_end(text: str, start: int, cell_end: int, core: int) -> tuple[int, float]:
    """The end of the core that begins at `start`, and the share of the context to read beyond it."""
    furthest = start + core
    if furthest >= cell_end:
        return cell_end, 0
    quoted = [match.span() for match in QUOTED.finditer(text, start, min(cell_end, furthest + MAX_QUOTED + 1))]
    for cut in CUTS:
        # A character further, since what stands behind a mark may tell that nothing ends there.
        for match in cut.end.finditer(text, start + int(core * cut.at_least), furthest + 1):
            end = match.end()
            if end <= furthest and not any(first < end < last for first, last in quoted):
                return end, cut.context_share
    return furthest, 1


def _edge(text: str, place: int, limit: int, step: int) -> int:
    """The place, or the one up to MAX_WORD further in the direction of `step` where no Latin word or number is cut."""
    furthest = place + step * min(MAX_WORD, abs(limit - place))
    edge = place
    while edge != furthest and 0 < edge < len(text) and text[edge - 1] in _IN_WORD and text[edge] in _IN_WORD:
        edge += step
    return edge


def overlapping_windows(n: int, n_at_once: int) -> list[Window]:
    """Windows over n units for a model with at most `n_at_once` positions, which overlap by half.

    The core of a window is the part for which it has more context than its neighbours; cores are a partition of [0, n).
    """
    if n <= n_at_once:
        return [Window(0, n, 0, n)] if n else []
    starts = [*range(0, n - n_at_once, max(1, n_at_once // 2)), n - n_at_once]
    cuts = [0, *((a + n_at_once + b) // 2 for a, b in pairwise(starts)), n]  # the middle of the overlap of two windows
    return [Window(start, start + n_at_once, *cut) for start, cut in zip(starts, pairwise(cuts), strict=True)]


def strided_windows(n: int, n_at_once: int, *, stride: int) -> list[Window]:
    """Windows of `n_at_once` units that begin `stride` units apart, as in BERT for long contexts; the last ends at n.

    Every unit is in a window, so a stride of more than `n_at_once` is treated as `n_at_once`. The core of a window is
    the whole window. The result is empty if n is 0. Raises a ValueError if `n_at_once` or `stride` is below 1.
    """
    if n_at_once < 1 or stride < 1:
        raise ValueError(f"given n_at_once={n_at_once}, stride={stride}; expected 1 or more of each")
    step = min(stride, n_at_once)
    n_windows = 1 + max(0, -(-(n - n_at_once) // step)) if n else 0
    bounds = [(k * step, min(n, k * step + n_at_once)) for k in range(n_windows)]
    return [Window(*bound, *bound) for bound in bounds]
