"""Decode the most probable entities, none of which are in closed stretches or longer than their label allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cige.data.sentence import Span
from cige.data.tags import tags_to_spans
from cige.lattice.lattice import Lattice
from cige.nn.crf_numpy import NumpyCRF
from cige.tagging.forcing import without_forced
from cige.tagging.within_lengths import best_within_lengths


def close(emissions: np.ndarray, lattices: Sequence[Lattice], tags: Sequence[str]) -> np.ndarray:
    """float[B, T, L]: emissions with which no character of a closed stretch is part of an entity."""
    if not any(lattice.closed for lattice in lattices):
        return emissions
    emissions, in_entity = emissions.copy(), np.array([tag != "O" for tag in tags])
    for row, lattice in enumerate(lattices):
        for start, end in lattice.closed:
            emissions[row, start:end, in_entity] = -np.inf
    return emissions


def best_spans(
    crf: NumpyCRF,
    emissions: np.ndarray,
    lattices: Sequence[Lattice],
    *,
    tags: Sequence[str],
    scheme: str,
    max_lengths: Mapping[str, int],
) -> list[list[Span]]:
    """The entities of the best tag sequence of each sentence in which no entity is longer than its label allows.

    Forced stretches have no maximum length, and are left out.

    Args:
        emissions: float[B, T, L] of the B `lattices`; padding may have any value.
        tags: the L tag names in `scheme`.
        max_lengths: label -> maximum length in characters; other labels have no limit.
    """
    decoded = _decode(crf, emissions, lattices, tags, scheme)
    for row, (spans, lattice) in enumerate(zip(decoded, lattices, strict=True)):
        if all(span.end - span.start <= max_lengths.get(span.label, span.end) for span in spans):
            continue  # nearly always
        rules = lattice.rules
        shorter = best_within_lengths(
            crf.trained,
            emissions[row, : lattice.n_chars],
            tags=tags,
            scheme=scheme,
            max_lengths=max_lengths,
            blocked=rules.blocked,
            exempt=[max(0, span.start) for span in rules.forced],
        )
        decoded[row] = without_forced(shorter, lattice)
    return decoded


def _decode(
    crf: NumpyCRF, emissions: np.ndarray, lattices: Sequence[Lattice], tags: Sequence[str], scheme: str
) -> list[list[Span]]:
    paths = crf.decode(emissions, [lattice.n_chars for lattice in lattices])
    return [
        without_forced(tags_to_spans([tags[tag] for tag in path], scheme), lattice)
        for path, lattice in zip(paths, lattices, strict=True)
    ]
