"""Packing: which neighbouring lines of a document make an instance, for every instance of an epoch at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cige.pretraining.shards import Shard

N_SPECIAL = 3  # [CLS] A [SEP] B [SEP]


@dataclass(frozen=True)
class Room:
    """What an instance may hold, [CLS] and both [SEP] included.

    Attributes:
        n_characters: pieces (characters, and the word pieces of other scripts).
        n_tokens: lattice tokens.
    """

    n_characters: int
    n_tokens: int

    @property
    def n_text_characters(self) -> int:
        return self.n_characters - N_SPECIAL

    @property
    def n_text_tokens(self) -> int:
        return self.n_tokens - N_SPECIAL


@dataclass(frozen=True)
class Packs:
    """The instances of a shard in an epoch; together they hold every line once.

    Attributes:
        firsts: int64[n], first line of each.
        ends: int64[n], line after its last.
        n_tokens: int64[n], lattice tokens of these lines.
        wants_other: bool[n], whether the second part is to come from another document (three-way sentence task).
    """

    firsts: np.ndarray
    ends: np.ndarray
    n_tokens: np.ndarray
    wants_other: np.ndarray

    def __len__(self) -> int:
        return len(self.firsts)


def pack_lines(shard: Shard, room: Room, *, short_prob: float, other_prob: float, rng: np.random.Generator) -> Packs:
    """Whole lines of one document, as many as fit.

    Whole lines, since a part that ends within a sentence would tell the order of the parts: in the true order the
    first part ends with a full stop, swapped it mostly would not. A line too long for the room is an instance alone.

    Args:
        short_prob: how often the room is drawn uniformly from 2 characters up, so that short texts are seen too.
        other_prob: how often an instance is to get its second part from another document; it then takes only the lines
            before a random one, and the rest begin the next instance.
    """
    n_lines = len(shard.line_tokens) - 1
    lines = np.arange(n_lines)
    rooms = np.full(n_lines, room.n_text_characters)
    is_short = rng.random(n_lines) < short_prob
    rooms[is_short] = rng.integers(2, room.n_text_characters + 1, is_short.sum())
    ends = np.minimum(
        _last_fitting(shard.line_pieces, rooms),
        _last_fitting(shard.line_tokens, np.full(n_lines, room.n_text_tokens)),
    )
    n_lines_of = np.diff(shard.document_lines)
    ends = np.minimum(ends, np.repeat(shard.document_lines[1:], n_lines_of))
    ends = np.maximum(ends, lines + 1)
    wants_other = rng.random(n_lines) < other_prob
    if other_prob:
        cuts = lines + 1 + (rng.random(n_lines) * np.maximum(ends - lines - 1, 1)).astype(np.int64)
        wants_other |= ends == lines + 1
        ends = np.where(wants_other, np.minimum(cuts, np.maximum(ends - 1, lines + 1)), ends)
    firsts = _chain(ends)
    ends = ends[firsts]
    return Packs(firsts, ends, shard.line_tokens[ends] - shard.line_tokens[firsts], wants_other[firsts])


def longest_line(shard: Shard) -> Room:
    """The least room that holds every line of a shard."""
    return Room(
        n_characters=int(np.diff(shard.line_pieces).max(initial=0)) + N_SPECIAL,
        n_tokens=int(np.diff(shard.line_tokens).max(initial=0)) + N_SPECIAL,
    )


def _last_fitting(offsets: np.ndarray, rooms: np.ndarray) -> np.ndarray:
    """The furthest end for each line such that no more than its room lies between."""
    return np.searchsorted(offsets, offsets[:-1] + rooms, side="right") - 1


def _chain(ends: np.ndarray) -> np.ndarray:
    """0, ends[0], ends[ends[0]] ... up to the last line."""
    following, firsts, line = ends.tolist(), [], 0
    while line < len(following):
        firsts.append(line)
        line = following[line]
    return np.array(firsts, np.int64)
