"""Decode the relations of characters into entities, which may be nested or discontinuous.

The score of an entity is the lowest probability of its relations: those of neighbours, and that of its last and first
character. Each pair of characters has its most probable class, so all entities are those of the best classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from cige.data.word_pair_classes import N_RELATIONS, NEXT
from cige.lattice.lattice import Lattice
from cige.nn.word_paths import Path, find_paths
from cige.tagging.scored_span import ScoredSpan


def decode_relations(scores: np.ndarray, lattice: Lattice, labels: Sequence[str]) -> list[ScoredSpan]:
    """The entities of a lattice with probabilities and the model's labels, sorted; rules of users are not applied.

    Args:
        scores: float[T, 2 M - 1, K + 2] of the T characters of the lattice (see nn/word_pairs.py).
        labels: the K labels.
    """
    reach = scores.shape[1] // 2
    spans = []
    for path in find_paths(scores.argmax(-1)):  # relations to what is beyond the text are on no path
        cells = _cells(path, reach)
        probability = min(_probability(scores[first, cell], number) for first, cell, number in cells)
        parts = path.parts
        of_entity = parts if len(parts) > 1 else ()
        spans.append(ScoredSpan(parts[0][0], parts[-1][1], labels[path.type], probability, parts=of_entity))
    return sorted(spans, key=lambda span: (span.start, span.end, span.label, span.parts))


def _cells(path: Path, reach: int) -> list[tuple[int, int, int]]:
    """(first character, cell, class) of each relation of an entity."""
    places = path.characters
    cells = [(a, b - a + reach, NEXT) for a, b in pairwise(places)]
    return [*cells, (places[-1], places[0] - places[-1] + reach, path.type + N_RELATIONS)]


def _probability(scores: np.ndarray, number: int) -> float:
    exponents = np.exp(scores.astype(np.float64) - scores.max())
    return float(exponents[number] / exponents.sum())
