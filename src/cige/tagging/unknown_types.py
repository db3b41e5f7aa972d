"""Entities of a type that the model was not trained on: which sentences may have any, and what they are called.

A tagger that was trained to (see `cige.data.user_words`) gives UNKNOWN_TYPE to stretches that user words of such a type
support. Here that becomes the label which the user gave.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from cige.data.sentence import Span
from cige.lattice.lattice import Lattice
from cige.lexicon.user_word import UNKNOWN_TYPE


def without_unknown_type(
    emissions: np.ndarray, tags: Sequence[str], labels: Collection[str], lattices: Sequence[Lattice]
) -> np.ndarray:
    """float[B, T, L] in which sentences without a word of an unknown type cannot have the tags of UNKNOWN_TYPE.

    Args:
        emissions: float[B, T, L]; returned as it is where nothing has to change.
        tags: the L tag names; labels: those that the model knows.
    """
    columns = [k for k, tag in enumerate(tags) if tag.partition("-")[2] == UNKNOWN_TYPE]
    rows = [k for k, lattice in enumerate(lattices) if not _unknown_words(lattice, labels)] if columns else []
    if not rows:
        return emissions
    emissions = emissions.copy()
    emissions[np.ix_(rows, range(emissions.shape[1]), columns)] = -np.inf
    return emissions


def named_by_user_words(spans: Sequence[Span], lattice: Lattice, labels: Collection[str]) -> list[Span]:
    """The spans of a sentence with UNKNOWN_TYPE replaced by the label of a user's word.

    That is the word over exactly this span, else the longest that overlaps it, the first of several. Only words of
    a type that is not among the model's `labels` count; a span that none of them overlaps is dropped.
    """
    if all(span.label != UNKNOWN_TYPE for span in spans):
        return list(spans)
    words = _unknown_words(lattice, labels)
    named = []
    for span in spans:
        if span.label != UNKNOWN_TYPE:
            named.append(span)
            continue
        over = [word for word in words if word[0] < span.end and word[1] > span.start]
        if over:
            exact = [word for word in over if word[:2] == (span.start, span.end)]
            best = exact[0] if exact else max(over, key=lambda word: (word[1] - word[0], -word[0]))
            named.append(replace(span, label=best[2]))
    return named


def _unknown_words(lattice: Lattice, labels: Collection[str]) -> list[tuple[int, int, str]]:
    """(start, end, label) of the user's words whose label is none of the model's."""
    return [
        (int(lattice.words[row, 0]), int(lattice.words[row, 1]), label)
        for row, label in lattice.labelled_words
        if label not in labels
    ]
