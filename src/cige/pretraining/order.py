"""Where an instance can be asked for the order of two texts: a block of one document that can be cut and swapped.

What lies around the block stays in its place, so an instance may begin or end within a line, or in another document,
without telling the order: whichever of the two texts comes first, both parts begin and end in the same way.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cige.pretraining.passage import Passage


@dataclass(frozen=True)
class Block:
    """Two consecutive texts of one document, as places in a shard: [start, middle) and [middle, end)."""

    start: int
    middle: int
    end: int


def find_block(passage: Passage, *, clause_ends: tuple[int, ...], rng: np.random.Generator) -> Block | None:
    """Two texts within a passage, or None where there are none.

    Both consist of whole lines of one document: the one that has most text in such lines here. They meet at a random
    line end. Where no document has two whole lines here, whole clauses take the place of lines, so long sentences are
    asked about too.

    Args:
        clause_ends: ids of the pieces that end a clause, such as a comma.
    """
    edges = [passage.start, *passage.document_ends, passage.end]
    places = _most_text(passage.line_ends, edges)
    if not places:
        places = _most_text(passage.places_after(clause_ends), edges)
    if not places:
        return None
    return Block(places[0], places[int(rng.integers(1, len(places) - 1))], places[-1])


def _most_text(places: list[int], edges: list[int]) -> list[int]:
    """The places between two neighbouring edges that have most text between their first and last; three or more."""
    best: list[int] = []
    for start, end in pairwise(edges):
        own = places[bisect_left(places, start) : bisect_right(places, end)]
        if len(own) >= 3 and (not best or own[-1] - own[0] > best[-1] - best[0]):
            best = own
    return best
