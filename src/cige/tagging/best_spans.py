"""The most probable entities that a text and a model's labels allow: none in closed stretches, none too long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cige.data.sentence import Span
from cige.data.tags import tags_to_spans
from cige.lattice.lattice import Lattice
from cige.nn.crf_numpy import NumpyCRF
from cige.tagging.forcing import beside_forced


def close(emissions: np.ndarray, lattices: Sequence[Lattice], tags: Sequence[str]) -> np.ndarray:
    """float[B, T, L] emissions under which every character of a closed stretch is outside all entities."""
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
    """The entities of the best tags of each sentence, none longer than its label allows.

    Where the best tags have an entity that is too long, its label is ruled out over that stretch and the sentence is
    decoded again, so that something else may be found there. Forced stretches are left out.

    Args:
        emissions: float[B, T, L], padded to any values, of the B `lattices`.
        tags: the L tag names in `scheme`.
        max_lengths: label -> characters; a label that is not here has no limit.
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
        beside_forced(tags_to_spans([tags[tag] for tag in path], scheme), lattice)
        for path, lattice in zip(paths, lattices, strict=True)
    ]
