"""Leave out matches that would split a Latin word or a number, such as AI in BAIDU or 12 in 2012."""

from __future__ import annotations

import re

import numpy as np

_RUN = re.compile("[A-Za-z]{2,}|[0-9]{2,}")  # full-width forms are folded to these before words are matched


def without_cut_runs(rows: np.ndarray, text: str) -> np.ndarray:
    """The rows (start, end, ...) whose edges are not between two Latin letters or two digits.

    Args:
        rows: int[n, 2 or more], half-open spans of `text`.
        text: normalised text.

    Returns:
        `rows` itself if all rows are kept. A word may end between a letter and a digit: iPhone is a word in iPhone15.
    """
    if not len(rows):
        return rows
    cuts = None  # cuts[i]: an edge between characters i - 1 and i splits a run
    for run in _RUN.finditer(text):
        if cuts is None:
            cuts = np.zeros(len(text) + 1, bool)
        cuts[run.start() + 1 : run.end()] = True
    if cuts is None:
        return rows
    is_cut = cuts[rows[:, :2]].any(1)
    return rows[~is_cut] if is_cut.any() else rows
