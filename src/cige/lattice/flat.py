"""The flat lattice of FLAT §3.1: every node a span with head and tail, and the way back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cige.lattice.lattice import Lattice


@dataclass(frozen=True)
class FlatLattice:
    """N = T + W spans; head and tail are inclusive positions, equal for a character (FLAT §3.1).

    Attributes:
        token: int64[N], the code point of a character or the id of a word.
        head: int32[N], index of the span's first character.
        tail: int32[N], index of the span's last character.
        n_base: number of words of the base lexicon, carried through.
        n_dropped: words left out by the node budget, carried through.
    """

    token: np.ndarray
    head: np.ndarray
    tail: np.ndarray
    n_base: int
    n_dropped: int = 0


def flatten(lattice: Lattice) -> FlatLattice:
    """Characters first, in order, then words as the lattice orders them."""
    position = np.arange(lattice.n_chars, dtype=np.int32)
    code_points = np.fromiter(map(ord, lattice.text), dtype=np.int64, count=lattice.n_chars)
    words = lattice.words
    return FlatLattice(
        token=np.concatenate([code_points, words[:, 2].astype(np.int64)]),
        head=np.concatenate([position, words[:, 0]]),
        tail=np.concatenate([position, words[:, 1] - 1]),
        n_base=lattice.n_base,
        n_dropped=lattice.n_dropped,
    )


def recover(flat: FlatLattice) -> Lattice:
    """Rebuild the lattice in any order of spans: head == tail makes the characters, the rest are skip-paths."""
    is_char = flat.head == flat.tail
    order = np.argsort(flat.head[is_char], kind="stable")
    text = "".join(map(chr, flat.token[is_char][order]))
    words = np.stack([flat.head[~is_char], flat.tail[~is_char] + 1, flat.token[~is_char]], axis=1).astype(np.int32)
    words = words[np.lexsort((words[:, 2], words[:, 1], words[:, 0]))]
    return Lattice(text=text, words=words, n_base=flat.n_base, n_dropped=flat.n_dropped)
