"""Entities of types that the model was not trained on: which sentences can have them, and their labels.

A tagger that was trained for this (see `cige.data.user_words`) predicts UNKNOWN_TYPE for spans that user words of such
a type support. This module replaces it by the label of the user word.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from cige.data.sentence import Span
from cige.lattice.lattice import Lattice
from cige.lexicon.user_word import UNKNOWN_TYPE


@lru_cache(maxsize=8)
def _columns(tags: tuple[str, ...]) -> list[int]:
    """The numbers of the tags of UNKNOWN_TYPE."""
    return [k for k, tag in enumerate(tags) if tag.partition("-")[2] == UNKNOWN_TYPE]


def without_unknown_type(
    emissions: np.ndarray, tags: Sequence[str], labels: Collection[str], lattices: Sequence[Lattice]
) -> np.ndarray:
    """float[B, T, L]: emissions that rule out UNKNOWN_TYPE in sentences without a user word of an unknown type.

    Args:
        emissions: float[B, T, L]; returned unchanged if nothing is ruled out.
        tags: the L tag names; labels: the labels that the model knows.
    """
    columns = _columns(tuple(tags))
    rows = [k for k, lattice in enumerate(lattices) if not _unknown_words(lattice, labels)] if columns else []
    if not rows:
        return emissions
    emissions = emissions.copy()
    emissions[np.ix_(rows, range(emissions.shape[1]), columns)] = -np.inf
    return emissions


def named_by_user_words(spans: Sequence[Span], lattice: Lattice, labels: Collection[str]) -> list[Span]:
    """The spans of a sentence with UNKNOWN_TYPE replaced by the label of a user word.

    This is the word with exactly this span or, if there is none, the longest word that overlaps it (of several, the
    first). Only words whose label is not one of the model's `labels` are considered; spans that overlap none of them
    are dropped.
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
    """(start, end, label) of the user words whose label the model does not have."""
    return [
        (int(lattice.words[row, 0]), int(lattice.words[row, 1]), label)
        for row, label in lattice.labelled_words
        if label not in labels
    ]
