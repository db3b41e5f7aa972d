"""Passage: consecutive text of a shard, from which the parts of an instance are taken."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np

from cige.lattice_bert.pretraining.packing import Packs
from cige.lattice_bert.pretraining.shards import Shard


@dataclass(frozen=True)
class Part:
    """A part of an instance, with pieces numbered from 0.

    Attributes:
        ids, starts, lengths: int[n], as in a Shard.
        word_starts: bool[n_pieces].
    """

    ids: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    word_starts: np.ndarray


class Passage:
    """The pieces [start, end) of a shard, at least one. A position is the number of the piece that follows it.

    Attributes:
        start, end: the passage.
        line_ends: positions where the lines that have a piece in the passage begin and end, in ascending order.
        document_ends: the positions strictly within the passage where one document ends and the next begins.
    """

    def __init__(self, shard: Shard, start: int, end: int):
        self.start, self.end, self._shard = start, end, shard
        first, last = shard.line_pieces.searchsorted((start, end - 1), side="right").tolist()
        lines = slice(first - 1, last + 1)
        self.line_ends: list[int] = shard.line_pieces[lines].tolist()
        self._line_tokens: list[int] = shard.line_tokens[lines].tolist()
        begun, ended = shard.document_lines.searchsorted((first, last)).tolist()
        inner: list[int] = shard.document_lines[begun:ended].tolist()
        self.document_ends = [self.line_ends[line - first + 1] for line in inner]

    def part(self, *stretches: tuple[int, int]) -> Part:
        """The pieces of one or several stretches [start, end) of the passage; empty stretches are left out.

        A token belongs to a stretch if it lies completely within it.
        """
        lines, n_pieces = [], 0
        for start, end in stretches:
            if start < end:
                lines.append(self._part(start, end, n_pieces))
                n_pieces += end - start
        if len(lines) == 1:
            return lines[0]
        return Part(*(np.concatenate([getattr(part, field.name) for part in lines]) for field in fields(Part)))

    def places_after(self, ids: tuple[int, ...]) -> list[int]:
        """The positions after pieces with these ids, in ascending order."""
        tokens = slice(self._line_tokens[0], self._line_tokens[-1])
        places = self._shard.starts[tokens][np.isin(self._shard.ids[tokens], ids)] + 1
        return places[(places > self.start) & (places <= self.end)].tolist()

    def _part(self, start: int, end: int, number: int) -> Part:
        """The part with pieces numbered from `number`."""
        first, last = bisect_right(self.line_ends, start) - 1, bisect_left(self.line_ends, end)
        tokens = slice(self._line_tokens[first], self._line_tokens[last])
        shard = self._shard
        ids, starts, lengths = shard.ids[tokens], shard.starts[tokens], shard.lengths[tokens].astype(np.int32)
        if self.line_ends[first] != start or self.line_ends[last] != end:
            within = (starts >= start) & (starts + lengths <= end)
            ids, starts, lengths = ids[within], starts[within], lengths[within]
        word_starts = shard.word_starts[start:end].copy()
        word_starts[0] = True  # the rest of a word that was cut counts as a word
        return Part(ids, starts - np.int32(start - number), lengths, word_starts)


def passage_of(shard: Shard, packs: Packs, number: int) -> Passage:
    """The text of an instance, given the instances of a shard."""
    return Passage(shard, int(packs.starts[number]), int(packs.ends[number]))


@dataclass(frozen=True)
class Block:
    """Two consecutive texts of one document, as positions in a shard: [start, middle) and [middle, end)."""

    start: int
    middle: int
    end: int


def find_block(passage: Passage, *, clause_ends: tuple[int, ...], rng: np.random.Generator) -> Block | None:
    """Find two texts within a passage; None if there are none.

    Both consist of whole lines of one document, the document with the most text in whole lines of the passage, and they
    meet at a random end of a line. If no document has two whole lines in the passage, whole clauses are used instead of
    lines (by the ids of pieces that end one), so that the order is predicted for long sentences as well.

    The text around the block stays in place. An instance may therefore begin or end within a line, or in another
    document, without revealing the order: both parts begin and end in the same way, whichever comes first.
    """
    edges = [passage.start, *passage.document_ends, passage.end]
    places = _most_text(passage.line_ends, edges) or _most_text(passage.places_after(clause_ends), edges)
    if not places:
        return None
    return Block(places[0], places[int(rng.integers(1, len(places) - 1))], places[-1])


def _most_text(places: list[int], edges: list[int]) -> list[int]:
    """The positions between two neighbouring edges with the most text between the first and last; at least three."""
    best: list[int] = []
    for start, end in pairwise(edges):
        inside = places[bisect_left(places, start) : bisect_right(places, end)]
        if len(inside) >= 3 and (not best or inside[-1] - inside[0] > best[-1] - best[0]):
            best = inside
    return best
