"""Packing: divide the text of a shard into the instances of an epoch, all instances at once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cige.lattice_bert.pretraining.shards import Shard

N_SPECIAL = 3  # [CLS] A [SEP] B [SEP]
# An instance ends with a line if one ends in the last part of its length; it is always filled to at least this share.
MIN_FILL = 0.85
_N_DRAWS = 1024


@dataclass(frozen=True)
class Room:
    """The maximum size of an instance, including [CLS] and both [SEP]."""

    n_characters: int  # pieces: characters, and the word pieces of other scripts
    n_tokens: int  # lattice tokens

    @property
    def n_text_characters(self) -> int:
        return self.n_characters - N_SPECIAL

    @property
    def n_text_tokens(self) -> int:
        return self.n_tokens - N_SPECIAL


@dataclass(frozen=True)
class Packs:
    """The instances of a shard in an epoch: consecutive stretches that together contain every piece once.

    Attributes:
        starts, ends: int64[n], the first piece of each, and the piece after its last.
        n_tokens: int64[n], the number of lattice tokens that lie completely within each.
        wants_other: bool[n], whether a second part from another document follows (three-way sentence task).
    """

    starts: np.ndarray
    ends: np.ndarray
    n_tokens: np.ndarray
    wants_other: np.ndarray

    def __len__(self) -> int:
        return len(self.starts)


class Reach:
    """Finds how far an instance can extend within lines [first, end) of a shard, or in all of it.

    A position is the number, in its shard, of the piece that follows it.
    """

    def __init__(self, shard: Shard, lines: tuple[int, int] | None = None):
        first, end = lines or (0, len(shard.line_pieces) - 1)
        tokens = slice(int(shard.line_tokens[first]), int(shard.line_tokens[end]))
        self.line_ends = shard.line_pieces[first : end + 1].tolist()
        self._first, self._n_most = self.line_ends[0], int(shard.lengths[tokens].max(initial=1))
        self._starts = shard.starts[tokens] - np.int32(self._first)
        self._ends = self._starts + shard.lengths[tokens]
        n = self.line_ends[-1] - self._first + 2
        self._n_ended = np.cumsum(np.bincount(self._ends, minlength=n))  # tokens that end at or before each position
        self._n_begun = np.cumsum(np.bincount(self._starts + 1, minlength=n))  # tokens that start before it

    def n_tokens(self, start: int, end: int) -> int:
        """The number of lattice tokens that lie completely within [start, end)."""
        start, end = start - self._first, end - self._first
        if end - start < self._n_most:  # a token may extend beyond both ends
            near = slice(self._n_ended[start], self._n_ended[end])
            return int((self._starts[near] >= start).sum())
        return int(self._n_ended[end] - self._n_begun[start])

    def furthest(self, start: int, *, n_characters: int, n_tokens: int) -> int:
        """The last position within these limits from `start`, but at least one piece further."""
        end = min(start + n_characters, self.line_ends[-1])
        if self.n_tokens(start, end) > n_tokens:
            places = range(start + 1, end)
            end = start + bisect_right(places, n_tokens, key=lambda place: self.n_tokens(start, place))
        return max(end, start + 1)

    def preferred(self, start: int, end: int) -> int:
        """The last end of a line before or at `end`, or `end` itself if that would leave much of the instance empty."""
        whole = self.line_ends[bisect_right(self.line_ends, end) - 1]
        return whole if whole - start >= MIN_FILL * (end - start) else end


def pack_shard(shard: Shard, room: Room, *, short_prob: float, other_prob: float, rng: np.random.Generator) -> Packs:
    """Fill one instance after the other with the text of a shard, across the ends of documents.

    An instance is as long as its maximum size allows, and ends with a line if that leaves little of it empty
    (MIN_FILL). Otherwise the line is cut where the instance is full, and its rest begins the next instance. A lattice
    token that crosses the cut is in neither.

    Args:
        short_prob: share of instances that end with the line that reaches a random length, from 2 characters upwards.
        other_prob: share of instances whose second part comes from another document; such an instance contains only the
            lines before a random one, and the others begin the next instance.
    """
    reach = Reach(shard)
    lines, n_pieces = reach.line_ends, reach.line_ends[-1]
    places, n_tokens, wants_other = [0], [], []
    draws = _draws(room.n_text_characters, short_prob, other_prob, rng)
    while places[-1] < n_pieces:
        start, (target, wants, share) = places[-1], next(draws)
        end = reach.furthest(start, n_characters=room.n_text_characters, n_tokens=room.n_text_tokens)
        reached = lines[bisect_left(lines, min(start + target, n_pieces))]
        end = reached if reached <= end else reach.preferred(start, end)
        if wants:
            first, last = bisect_right(lines, start), bisect_right(lines, end - 2)  # leaves room for the other text
            wants = first < last
            end = lines[first + int(share * (last - first))] if wants else end
        places.append(end)
        n_tokens.append(reach.n_tokens(start, end))
        wants_other.append(wants)
    edges = np.array(places, np.int64)
    return Packs(edges[:-1], edges[1:], np.array(n_tokens, np.int64), np.array(wants_other, np.bool_))


def _draws(
    n_characters: int, short_prob: float, other_prob: float, rng: np.random.Generator
) -> Iterator[tuple[int, bool, float]]:
    """For each instance: its minimum length (more than fits if it is to be full), whether its second part comes from
    another document, and a random share."""
    while True:
        targets = np.where(
            rng.random(_N_DRAWS) < short_prob, rng.integers(2, n_characters + 1, _N_DRAWS), n_characters + 1
        )
        wants = rng.random(_N_DRAWS) < other_prob
        yield from zip(targets.tolist(), wants.tolist(), rng.random(_N_DRAWS).tolist(), strict=True)
