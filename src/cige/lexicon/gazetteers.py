"""Gazetteers: lists of names of one kind in addition to a lexicon, and the lists that contain each word."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from cige.errors import LexiconError
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.words_file import read_words

MAX_GAZETTEERS = 30  # each has a bit of an int32, whose first bit is that of the lexicon


def with_gazetteers(base: Lexicon, paths: Sequence[str | os.PathLike[str]]) -> tuple[Lexicon, np.ndarray]:
    """The union of a lexicon's base words and those of some word lists, and int32[n_words]: bit 0 is set for words of
    `base`, and bit 1 + k for words of the k-th list.

    The gazetteers' words come first, so that a trimmed model keeps them. Counts of the base lexicon are kept; other
    words have a count of 1. Raises a LexiconError if a list cannot be read or has no usable word, or there are too many
    lists.
    """
    lists = []
    for path in paths:
        listed = read_words(path)
        if not listed.words:
            raise LexiconError(
                f"no usable word; expected words of two or more characters, one per line\n{listed.report}"
            )
        lists.append(listed.words)
    return with_lists(base, lists)


def with_lists(base: Lexicon, gazetteers: Sequence[Sequence[str]]) -> tuple[Lexicon, np.ndarray]:
    """Like `with_gazetteers`, for lists of normalised words in memory."""
    if len(gazetteers) > MAX_GAZETTEERS:
        raise LexiconError(f"{len(gazetteers)} gazetteers; expected at most {MAX_GAZETTEERS}")
    lists = [list(base), *gazetteers]
    words = list(dict.fromkeys(word for group in (*lists[1:], lists[0]) for word in group))
    counts = None
    if base.count(0) is not None:
        ids = [base.id(word) for word in words]
        counts = [1 if number is None else int(base.count(number) or 0) for number in ids]
    union = Lexicon.from_words(words, counts=counts, spaces=True)
    groups = np.zeros(len(words), np.int32)
    place = {word: k for k, word in enumerate(words)}
    for bit, group in enumerate(lists):
        groups[[place[word] for word in group]] |= 1 << bit
    return union, groups
