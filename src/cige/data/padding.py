"""PaddedLattices: several encoded lattices as padded arrays, of NumPy for any runtime or of PyTorch (LatticeBatch)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from cige.data.vocabulary import PAD, EncodedLattice

Array = TypeVar("Array")  # np.ndarray or torch.Tensor


@dataclass(frozen=True)
class PaddedLattices(Generic[Array]):
    """The input of a lattice model for B sentences. Padding is row PAD, position 0.

    Attributes:
        chars, bigrams: int64[B, T] rows.
        n_chars: int64[B].
        words: int64[B, W] rows; word_starts, word_ends: int64[B, W] half-open spans.
        word_counts: int64[B, W], how often training text uses each word (see Vocabulary); 0 for user words.
        word_groups: int64[B, W], bit g is set if a word is in gazetteer g; 0 for user words.
        n_words: int64[B].
        word_labels: int64[B, W], the label of each word (see EncodedLattice), 0 for none. None if no word has a label.
    """

    chars: Array
    bigrams: Array
    n_chars: Array
    words: Array
    word_starts: Array
    word_ends: Array
    word_counts: Array
    word_groups: Array
    n_words: Array
    word_labels: Array | None = None


def pad_lattices(lattices: Sequence[EncodedLattice]) -> PaddedLattices[np.ndarray]:
    """Pad to the longest lattice: T and W are those of the longest, and at least 1."""
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
        word_labels=pad_rows([x.word_labels for x in lattices]),
    )


def pad_rows(rows: Sequence[np.ndarray], *, fill: int = PAD) -> np.ndarray:
    """Pad B integer arrays with `fill` to int64[B, n], where n is the length of the longest, and at least 1."""
    out = np.full((len(rows), max([1, *map(len, rows)])), fill, np.int64)
    for padded, row in zip(out, rows, strict=True):
        padded[: len(row)] = row
    return out
