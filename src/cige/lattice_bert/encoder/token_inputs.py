"""TokenInputs: one or two lattices with [CLS] and [SEP], truncated to a maximum size, as a Lattice-BERT reads them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cige.lattice_bert.encoder.joint_vocabulary import JointVocabulary
from cige.lattice_bert.encoder.token_lattice import TokenLattice

SPECIAL = -1  # the side of [CLS] and [SEP], their offsets, and their values in further columns


@dataclass(frozen=True)
class TokenRow:
    """n tokens in the order [CLS] first [SEP], or [CLS] first [SEP] second [SEP], as TokenBatch pads them.

    Positions count pieces and special tokens through both texts; [CLS] is at position 0.

    Attributes:
        ids: int32[n], ids of the joint vocabulary.
        starts, ends: int32[n], positions of the first and the last piece; both inclusive.
        types: int32[n], 0 for [CLS] first [SEP], 1 for second [SEP].
    """

    ids: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    types: np.ndarray

    @property
    def n_tokens(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class TokenInputs(TokenRow):
    """A TokenRow with the position of each token in the texts.

    Attributes:
        sides: int8[n], the text of each token: 0 first, 1 second, -1 none (special).
        char_starts, char_ends: int32[n], half-open [start, end) in code points of that text; -1 for special tokens.
        n_cut_first, n_cut_second: number of pieces cut from the end of each text to meet the budget.
    """

    sides: np.ndarray
    char_starts: np.ndarray
    char_ends: np.ndarray
    n_cut_first: int = 0
    n_cut_second: int = 0

    @property
    def n_positions(self) -> int:
        """Number of pieces and special tokens, which `max_chars` limits; a position embedding needs as many rows."""
        return int(self.ends[-1]) + 1

    def chain(self, side: int) -> np.ndarray:
        """int64[P]: the indices of one text's pieces, the character chain, from which tags and spans are read."""
        return np.flatnonzero((self.sides == side) & (self.starts == self.ends))


def token_inputs(
    lattices: Sequence[TokenLattice],
    *,
    vocabulary: JointVocabulary,
    max_tokens: int | None = None,
    max_chars: int | None = None,
) -> TokenInputs:
    """Join one or two lattices to an input; see `LatticeTokenizer.encode`, which also accepts texts."""
    n_special = len(lattices) + 1
    for name, budget in (("max_tokens", max_tokens), ("max_chars", max_chars)):
        if budget is not None and budget < n_special:
            raise ValueError(f"{name}={budget}: expected at least {n_special}, for [CLS] and [SEP]")
    pieces = _kept_pieces(lattices, max_tokens=max_tokens, max_chars=max_chars)
    texts = []
    for lattice, n_pieces in zip(lattices, pieces, strict=True):
        n = _n_tokens(lattice, n_pieces)
        starts, ends = lattice.starts[:n], lattice.ends[:n]
        offsets = lattice.piece_starts[starts], lattice.piece_ends[ends - 1]
        texts.append(TextTokens(lattice.ids[:n], starts, ends, n_pieces, offsets))
    ids, starts, ends, types, char_starts, char_ends = join(texts, cls_id=vocabulary.cls_id, sep_id=vocabulary.sep_id)
    n_cut = [lattice.n_pieces - n_pieces for lattice, n_pieces in zip(lattices, pieces, strict=True)]
    return TokenInputs(
        ids=ids,
        starts=starts,
        ends=ends,
        types=types,
        sides=np.where(char_starts == SPECIAL, SPECIAL, types).astype(np.int8),
        char_starts=char_starts,
        char_ends=char_ends,
        n_cut_first=n_cut[0],
        n_cut_second=n_cut[1] if len(n_cut) > 1 else 0,
    )


class TextTokens(NamedTuple):
    """The n tokens of one text, without [CLS] and [SEP]."""

    ids: np.ndarray  # int[n], of the joint vocabulary
    starts: np.ndarray  # int[n], half-open [start, end) in the text's pieces
    ends: np.ndarray
    n_pieces: int
    columns: Sequence[np.ndarray] = ()  # further values of each token, int[n] each


def join(texts: Sequence[TextTokens], *, cls_id: int, sep_id: int) -> np.ndarray:
    """Put [CLS] before the first text and [SEP] after each text.

    Returns int32[4 + k, N]: the fields of a TokenRow, then the k columns of the texts, SPECIAL for [CLS] and [SEP].
    """
    rows = np.empty((4 + len(texts[0].columns), 1 + sum(len(text.ids) + 1 for text in texts)), np.int32)
    rows[:4, 0], rows[4:, 0] = (cls_id, 0, 0, 0), SPECIAL
    place = position = 1
    for number, text in enumerate(texts):
        here = slice(place, place + len(text.ids))
        rows[0, here], rows[3, here] = text.ids, number
        np.add(text.starts, position, out=rows[1, here])
        np.add(text.ends, position - 1, out=rows[2, here])
        for row, column in zip(rows[4:], text.columns, strict=True):
            row[here] = column
        position += text.n_pieces
        rows[:4, here.stop], rows[4:, here.stop] = (sep_id, position, position, number), SPECIAL
        place, position = here.stop + 1, position + 1
    return rows


def _kept_pieces(lattices: Sequence[TokenLattice], *, max_tokens: int | None, max_chars: int | None) -> list[int]:
    """The number of pieces of each lattice that are kept: as many in total as meet both budgets."""
    sizes, n_special = [lattice.n_pieces for lattice in lattices], len(lattices) + 1
    total = sum(sizes) if max_chars is None else min(sum(sizes), max_chars - n_special)

    def n_tokens(shares: list[int]) -> int:
        return n_special + sum(map(_n_tokens, lattices, shares))

    shares = _shares(sizes, total)
    if max_tokens is None or n_tokens(shares) <= max_tokens:  # nearly every text
        return shares
    return _shares(sizes, bisect_right(range(total), max_tokens, key=lambda n: n_tokens(_shares(sizes, n))) - 1)


def _shares(sizes: list[int], total: int) -> list[int]:
    """Reduce the larger size by one (of equal sizes, the second) until they sum to `total`; returns the new sizes."""
    if len(sizes) == 1:
        return [total]
    first = min(sizes[0], max(total - sizes[1], (total + 1) // 2))
    return [first, total - first]


def _n_tokens(lattice: TokenLattice, n_pieces: int) -> int:
    """The number of tokens within the first `n_pieces`; these tokens come first, since tokens are sorted by end."""
    return int(np.searchsorted(lattice.ends, n_pieces, side="right"))
