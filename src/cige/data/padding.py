"""PaddedLattices: several encoded lattices as padded NumPy arrays, the form in which any runtime can read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cige.data.vocabulary import PAD, EncodedLattice


@dataclass(frozen=True)
class PaddedLattices:
    """What a lattice model reads of B sentences. Padding is row PAD, position 0.

    Attributes:
        chars, bigrams: int64[B, T] rows.
        n_chars: int64[B].
        words: int64[B, W] rows; word_starts, word_ends: int64[B, W] half-open spans.
        word_counts: int64[B, W], how often training text uses each word (see Vocabulary); 0 on user words.
        word_groups: int64[B, W], bit g is set if a word is in gazetteer g; 0 on user words.
        n_words: int64[B].
    """

    chars: np.ndarray
    bigrams: np.ndarray
    n_chars: np.ndarray
    words: np.ndarray
    word_starts: np.ndarray
    word_ends: np.ndarray
    word_counts: np.ndarray
    word_groups: np.ndarray
    n_words: np.ndarray


def pad_lattices(lattices: Sequence[EncodedLattice]) -> PaddedLattices:
    """T and W are those of the longest, and at least 1."""
    return PaddedLattices(
        chars=pad_rows([x.chars for x in lattices]),
        bigrams=pad_rows([x.bigrams for x in lattices]),
        n_chars=np.array([len(x.chars) for x in lattices], np.int64),
        words=pad_rows([x.words for x in lattices]),
        word_starts=pad_rows([x.starts for x in lattices]),
        word_ends=pad_rows([x.ends for x in lattices]),
        word_counts=pad_rows([x.counts for x in lattices]),
        word_groups=pad_rows([x.groups for x in lattices]),
        n_words=np.array([len(x.words) for x in lattices], np.int64),
    )


def pad_rows(rows: Sequence[np.ndarray]) -> np.ndarray:
    """int64[B, longest, at least 1] of B integer arrays of any lengths."""
    out = np.full((len(rows), max([1, *map(len, rows)])), PAD, np.int64)
    for padded, row in zip(out, rows, strict=True):
        padded[: len(row)] = row
    return out
