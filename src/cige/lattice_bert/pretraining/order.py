"""Find two texts of an instance whose order can be predicted: a block of one document that can be split and swapped.

The text around the block stays in place. An instance may therefore begin or end within a line, or in another document,
without revealing the order: whichever of the two texts comes first, both parts begin and end in the same way.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cige.lattice_bert.pretraining.passage import Passage


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
    lines, so that the order is predicted for long sentences as well.

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
    """The positions between two neighbouring edges with the most text between the first and last; at least three."""
    best: list[int] = []
    for start, end in pairwise(edges):
        inside = places[bisect_left(places, start) : bisect_right(places, end)]
        if len(inside) >= 3 and (not best or inside[-1] - inside[0] > best[-1] - best[0]):
            best = inside
    return best
