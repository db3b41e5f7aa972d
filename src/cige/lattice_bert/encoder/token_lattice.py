"""TokenLattice: the word pieces of a text and all vocabulary words over them, the input of a Lattice-BERT."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class TokenLattice:
    """The n lattice tokens of a text of P pieces: the pieces, and the vocabulary words that consist of several pieces.

    Tokens are sorted by end, then by length: the piece that ends at a place comes first, then the words, short to long.
    No two tokens have the same span. A word never begins or ends inside a run of letters and digits, and never crosses
    white space.

    Attributes:
        text: the original text.
        ids: int32[n], ids of the joint vocabulary.
        starts, ends: int32[n], half-open [start, end) in pieces.
        piece_starts, piece_ends: int32[P], half-open [start, end) of each piece in code points of `text`.
    """

    text: str
    ids: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    piece_starts: np.ndarray
    piece_ends: np.ndarray

    @property
    def n_tokens(self) -> int:
        return len(self.ids)

    @property
    def n_pieces(self) -> int:
        return len(self.piece_starts)

    @property
    def is_piece(self) -> np.ndarray:
        """bool[n]: the tokens that are pieces (the character chain of the paper's §2.5); the others are words."""
        return self.ends - self.starts == 1

    def char_span(self, token: int) -> tuple[int, int]:
        """Half-open [start, end) of a token in code points of `text`."""
        return int(self.piece_starts[self.starts[token]]), int(self.piece_ends[self.ends[token] - 1])

    def char_spans(self) -> np.ndarray:
        """int32[n, 2]: the half-open [start, end) of all tokens in code points of `text`."""
        return np.stack([self.piece_starts[self.starts], self.piece_ends[self.ends - 1]], axis=1)

    def part(self, start: int, end: int) -> TokenLattice:
        """The lattice of pieces [start, end), numbered from `start`; offsets still refer to the whole `text`. Raises a
        ValueError if start or end is not in the text, or end < start."""
        if not 0 <= start <= end <= self.n_pieces:
            raise ValueError(f"pieces [{start}, {end}) of {self.n_pieces}: expected 0 <= start <= end <= n_pieces")
        first, last = np.searchsorted(self.ends, [start, end], side="right")
        within = np.flatnonzero(self.starts[first:last] >= start) + first
        return TokenLattice(
            text=self.text,
            ids=self.ids[within],
            starts=self.starts[within] - np.int32(start),
            ends=self.ends[within] - np.int32(start),
            piece_starts=self.piece_starts[start:end],
            piece_ends=self.piece_ends[start:end],
        )
