"""Decode the most probable entities, none of which are in closed stretches or longer than their label allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cige.data.sentence import Span
from cige.data.tags import tags_to_spans
from cige.lattice.lattice import Lattice
from cige.nn.crf_numpy import NumpyCRF
from cige.tagging.forcing import without_forced


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
    """The entities of the best tag sequence of each sentence, none longer than its label allows.

    If an entity is too long, its label is ruled out over that span and the sentence is decoded again, so that other
    entities can be found there. Forced stretches are left out.

    Args:
        emissions: float[B, T, L] of the B `lattices`; padding may have any value.
        tags: the L tag names in `scheme`.
        max_lengths: label -> maximum length in characters; other labels have no limit.
    """
    found = _decode(crf, emissions, lattices, tags, scheme)
    for row, spans in enumerate(found):
        own = None
        while too_long := [s for s in spans if s.end - s.start > max_lengths.get(s.label, s.end)]:
            own = emissions[row : row + 1].copy() if own is None else own
            for span in too_long:
                is_its_tag = np.array([tag.partition("-")[2] == span.label for tag in tags])
                own[0, span.start : span.end, is_its_tag] = -np.inf
            spans = _decode(crf, own, [lattices[row]], tags, scheme)[0]
        found[row] = spans
    return found


def _decode(
    crf: NumpyCRF, emissions: np.ndarray, lattices: Sequence[Lattice], tags: Sequence[str], scheme: str
) -> list[list[Span]]:
    paths = crf.decode(emissions, [lattice.n_chars for lattice in lattices])
    return [
        without_forced(tags_to_spans([tags[tag] for tag in path], scheme), lattice)
        for path, lattice in zip(paths, lattices, strict=True)
    ]
