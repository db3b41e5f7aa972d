"""Find the best answer span in the scores of a window (appendix C.2)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class BestSpan(NamedTuple):
    """A span [start, end] of a window in pieces, both ends inclusive, and its score."""

    score: float
    start: int
    end: int


def best_span(starts: np.ndarray, ends: np.ndarray, *, max_length: int) -> BestSpan:
    """The span with the largest starts[i] + ends[j] where i <= j < i + max_length.

    Among spans with equal scores, the shortest is chosen, and among these the first.

    Args:
        starts, ends: float[P], scores of each piece as the first and as the last piece; P is at least 1.
    """
    best = BestSpan(-np.inf, 0, 0)
    for more in range(min(max_length, len(starts))):
        scores = starts[: len(starts) - more] + ends[more:]
        place = int(scores.argmax())
        if scores[place] > best.score:
            best = BestSpan(float(scores[place]), place, place + more)
    return best
