"""Windows over a context that is too long to be read at once, and the best span over all of them (appendix C.2)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

NONE = 0  # the place of [CLS], to which a window without the answer points
STRIDE = 128  # pieces from one window to the next


class BestSpan(NamedTuple):
    """A span [start, end] of a window, both inclusive, in pieces, and its score."""

    score: float
    start: int
    end: int


def windows(n_pieces: int, size: int, *, stride: int = STRIDE) -> list[tuple[int, int]]:
    """[start, end) of each window; the last one ends at `n_pieces`, and every piece is in one. None of nothing.

    Raises:
        ValueError: a size or stride below 1.
    """
    if size < 1 or stride < 1:
        raise ValueError(f"size {size}, stride {stride}: expected 1 or more")
    found = []
    start = 0
    while start < n_pieces:
        end = min(n_pieces, start + size)
        found.append((start, end))
        if end == n_pieces:
            break
        start += min(stride, size)
    return found


def best_span(starts: np.ndarray, ends: np.ndarray, *, max_length: int) -> BestSpan:
    """The span with the greatest starts[i] + ends[j] where i <= j < i + max_length; the shortest, then first of equals.

    Args:
        starts, ends: float[P], scores of each piece as the first and as the last one; P is 1 or more.
    """
    best = BestSpan(-np.inf, 0, 0)
    for more in range(min(max_length, len(starts))):
        scores = starts[: len(starts) - more] + ends[more:]
        place = int(scores.argmax())
        if scores[place] > best.score:
            best = BestSpan(float(scores[place]), place, place + more)
    return best
