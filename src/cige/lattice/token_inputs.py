"""TokenInputs: one or two lattices with [CLS] and [SEP] around them, cut to a budget, as a Lattice-BERT reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cige.lattice.token_lattice import TokenLattice
from cige.lexicon.joint_vocabulary import JointVocabulary

SPECIAL = -1  # the side of [CLS] and [SEP], and their offsets


@dataclass(frozen=True)
class TokenInputs:
    """n tokens in the order [CLS] first [SEP], or [CLS] first [SEP] second [SEP].

    Positions count pieces and special tokens, from 0 for [CLS] on through both texts.

    Attributes:
        ids: int32[n], ids of the joint vocabulary.
        starts, ends: int32[n], positions of the first and the last piece; both inclusive.
        types: int32[n], 0 for [CLS] first [SEP], 1 for second [SEP].
        sides: int8[n], the text of each token: 0 first, 1 second, -1 none (special).
        char_starts, char_ends: int32[n], half-open [start, end) in code points of that text; -1 for special tokens.
        n_cut_first, n_cut_second: pieces cut from the end of each text to meet the budget.
    """

    ids: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    types: np.ndarray
    sides: np.ndarray
    char_starts: np.ndarray
    char_ends: np.ndarray
    n_cut_first: int = 0
    n_cut_second: int = 0

    @property
    def n_tokens(self) -> int:
        return len(self.ids)

    @property
    def n_positions(self) -> int:
        """Pieces and special tokens: what `max_chars` bounds and an embedding of positions must have room for."""
        return int(self.ends[-1]) + 1

    def chain(self, side: int) -> np.ndarray:
        """int64[P]: the places of one text's pieces: the character chain, which tags and spans are read from."""
        return np.flatnonzero((self.sides == side) & (self.starts == self.ends))


def token_inputs(
    lattices: Sequence[TokenLattice],
    *,
    vocabulary: JointVocabulary,
    max_tokens: int | None = None,
    max_chars: int | None = None,
) -> TokenInputs:
    """Put one or two lattices together; see `LatticeTokenizer.encode`, which takes texts too."""
    n_special = len(lattices) + 1
    for name, budget in (("max_tokens", max_tokens), ("max_chars", max_chars)):
        if budget is not None and budget < n_special:
            raise ValueError(f"{name}={budget}: expected at least {n_special}, for [CLS] and [SEP]")
    kept = _kept_pieces(
        lattices,
        max_tokens=None if max_tokens is None else max_tokens - n_special,
        max_pieces=None if max_chars is None else max_chars - n_special,
    )
    n_tokens = [_n_tokens(lattice, n_pieces) for lattice, n_pieces in zip(lattices, kept, strict=True)]
    ids, starts, ends, types, sides, char_starts, char_ends = rows = np.empty(
        (7, sum(n_tokens) + n_special), dtype=np.int32
    )
    rows[:, 0] = vocabulary.cls_id, 0, 0, 0, SPECIAL, SPECIAL, SPECIAL
    place = position = 1
    for side, (lattice, n) in enumerate(zip(lattices, n_tokens, strict=True)):
        here = slice(place, place + n)
        ids[here] = lattice.ids[:n]
        np.add(lattice.starts[:n], position, out=starts[here])
        np.add(lattice.ends[:n], position - 1, out=ends[here])
        types[here] = sides[here] = side
        char_starts[here] = lattice.piece_starts[lattice.starts[:n]]
        char_ends[here] = lattice.piece_ends[lattice.ends[:n] - 1]
        place, position = place + n + 1, position + kept[side] + 1
        rows[:, place - 1] = vocabulary.sep_id, position - 1, position - 1, side, SPECIAL, SPECIAL, SPECIAL
    n_cut = [lattice.n_pieces - n_pieces for lattice, n_pieces in zip(lattices, kept, strict=True)]
    return TokenInputs(
        ids=ids,
        starts=starts,
        ends=ends,
        types=types,
        sides=sides.astype(np.int8),
        char_starts=char_starts,
        char_ends=char_ends,
        n_cut_first=n_cut[0],
        n_cut_second=n_cut[1] if len(n_cut) > 1 else 0,
    )


def _kept_pieces(lattices: Sequence[TokenLattice], *, max_tokens: int | None, max_pieces: int | None) -> list[int]:
    """How many pieces of each lattice stay: those of the most pieces in all that meet both budgets."""
    sizes = [lattice.n_pieces for lattice in lattices]
    low, high = 0, sum(sizes) if max_pieces is None else min(sum(sizes), max_pieces)
    shares = _shares(sizes, high)
    if max_tokens is None or sum(map(_n_tokens, lattices, shares)) <= max_tokens:  # nearly every text
        return shares
    while low < high:  # the fewer pieces, the fewer tokens
        middle = (low + high + 1) // 2
        shares = _shares(sizes, middle)
        if sum(map(_n_tokens, lattices, shares)) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    return _shares(sizes, low)


def _shares(sizes: list[int], total: int) -> list[int]:
    """What is left of each size when the longer one loses one at a time until `total` are left; of equals, the last."""
    if len(sizes) == 1:
        return [total]
    first = min(sizes[0], max(total - sizes[1], (total + 1) // 2))
    return [first, total - first]


def _n_tokens(lattice: TokenLattice, n_pieces: int) -> int:
    """How many tokens lie within the first `n_pieces`; they come first, since tokens are sorted by end."""
    return int(np.searchsorted(lattice.ends, n_pieces, side="right"))
