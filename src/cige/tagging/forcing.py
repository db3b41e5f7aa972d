"""Forced entities: emissions with which they are decoded, and the entities themselves."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeVar

import numpy as np

from cige.data.sentence import Span
from cige.data.tags import spans_to_tags, split_tag
from cige.lattice.lattice import Lattice
from cige.tagging.scored_span import ScoredSpan
from cige.tagging.selection import Selection

_AnySpan = TypeVar("_AnySpan", Span, ScoredSpan)


def with_forced_spans(
    emissions: np.ndarray, lattices: Sequence[Lattice], *, tags: Sequence[str], scheme: str, labels: Collection[str]
) -> np.ndarray:
    """float[B, T, L]: emissions with which every forced stretch is one entity, so that its context is decoded with it.

    The entity has the forced label if that is one of the model's `labels`. Otherwise it may have any label: the context
    is decoded with a name there, but its type is open. If a stretch extends beyond the lattice, the part within it is
    an entity.

    Args:
        emissions: float[B, T, L]; returned unchanged if nothing is forced.
        tags: the L tag names in `scheme`.
    """
    rows = [row for row, lattice in enumerate(lattices) if lattice.rules.forced]
    if not rows:
        return emissions
    emissions = emissions.copy()
    parts = [split_tag(tag, scheme) for tag in tags]
    for row in rows:
        n_chars = lattices[row].n_chars
        for span in lattices[row].rules.forced:
            start, end = max(0, span.start), min(n_chars, span.end)
            if start >= end:
                continue
            wanted = spans_to_tags(end - start, [Span(0, end - start, "X")], scheme)
            for place, (prefix, _) in enumerate((split_tag(tag, scheme) for tag in wanted), start=start):
                allowed = [p == prefix and (span.label not in labels or name == span.label) for p, name in parts]
                emissions[row, place] = _only(emissions[row, place], np.array(allowed))
            if scheme == "BIO" and end < n_chars:  # BIO has no closing tag: rule out that the entity continues
                emissions[row, end, [p == "I" for p, _ in parts]] = -np.inf
    return emissions


def _only(scores: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """float[L] with all but the allowed tags ruled out; if the allowed tags are ruled out already, they get score 0."""
    if np.isneginf(scores[allowed]).all():
        scores = np.zeros_like(scores)
    return np.where(allowed, scores, -np.inf)


def forced_entities(lattice: Lattice, labels: Collection[str], chosen: Selection) -> list[ScoredSpan]:
    """The forced stretches that begin in the lattice's text, with the user's labels; they may extend beyond its end.

    Args:
        labels: the model's labels.
        chosen: which entities are reported; those of other labels than the requested ones are left out.
    """
    inside = [span for span in lattice.rules.forced if 0 <= span.start < lattice.n_chars]
    named = [(span, chosen.name_of_word(span.label, labels)) for span in inside]
    return [ScoredSpan(span.start, span.end, name, 1.0, forced=True) for span, name in named if name is not None]


def without_forced(spans: Sequence[_AnySpan], lattice: Lattice) -> list[_AnySpan]:
    """The spans that do not overlap a forced stretch."""
    forced = lattice.rules.forced
    if not forced:
        return list(spans)
    taken = np.zeros(lattice.n_chars, bool)
    for span in forced:
        taken[max(0, span.start) : max(0, span.end)] = True
    return [span for span in spans if not taken[span.start : span.end].any()]
