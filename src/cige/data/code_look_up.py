"""Look up codes of characters or bigrams in ascending codes, each with a number."""

from __future__ import annotations

import numpy as np


def looked_up(codes: np.ndarray, known: np.ndarray, numbers: np.ndarray, *, missing: int) -> np.ndarray:
    """int64[n]: the number of each of the codes int64[n], or `missing`.

    Args:
        known: int64[K], ascending; numbers: int[K].
    """
    if not len(known):
        return np.full(len(codes), missing, np.int64)
    place = np.searchsorted(known, codes)
    place[place == len(known)] = 0
    return np.where(known[place] == codes, numbers[place], missing).astype(np.int64)
