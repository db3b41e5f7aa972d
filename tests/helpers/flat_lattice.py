"""The flat lattice of FLAT §3.1 as `models.flat.flat_view` makes it, and the way back to the lattice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from cige.data.batch import collate
from cige.data.vocabulary import EncodedLattice
from cige.lattice.lattice import Lattice
from cige.models.flat import flat_view


@dataclass(frozen=True)
class FlatLattice:
    """N = T + W spans; head and tail are inclusive positions, equal for a character.

    Attributes:
        token: int64[N], the code point of a character or the id of a word.
        head, tail: int64[N], index of the span's first and last character.
    """

    token: np.ndarray
    head: np.ndarray
    tail: np.ndarray


def flatten(lattice: Lattice) -> FlatLattice:
    """The view of a batch of this lattice, code points and word ids as its rows."""
    chars = np.fromiter(map(ord, lattice.text), dtype=np.int64, count=lattice.n_chars)
    starts, ends, words = lattice.words.astype(np.int64).T
    zeros = np.zeros_like(words)
    batch = collate([EncodedLattice(chars, chars, words, starts, ends, zeros, zeros, lattice.text)])
    view = flat_view(batch)
    tokens = torch.cat([batch.chars, batch.words], 1).gather(1, view.source)
    return FlatLattice(*(x[0, : lattice.n_nodes].numpy() for x in (tokens, view.head, view.tail)))


def recover(flat: FlatLattice) -> tuple[str, np.ndarray]:
    """Text and int32[W, 3] words of the lattice from its spans in any order: head == tail makes the characters."""
    is_char = flat.head == flat.tail
    order = np.argsort(flat.head[is_char], kind="stable")
    text = "".join(map(chr, flat.token[is_char][order]))
    words = np.stack([flat.head[~is_char], flat.tail[~is_char] + 1, flat.token[~is_char]], axis=1).astype(np.int32)
    return text, words[np.lexsort((words[:, 2], words[:, 1], words[:, 0]))]
