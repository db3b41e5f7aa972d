"""The user's own words in a text: forced entities, words with the user's type, and types that the model does not know.

A typed word is an entity if the model says so, and its type is then the user's. A tagger that was trained for it (see
`cige.data.user_words`) predicts UNKNOWN_TYPE for spans that user words of an unknown type support; the label of such a
word takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np

from cige.data.sentence import Span
from cige.data.tags import spans_to_tags, split_tag
from cige.lattice.lattice import Lattice
from cige.lexicon.rules import ForcedSpan
from cige.lexicon.user_word import UNKNOWN_TYPE
from cige.tagging.prediction_model import ScoredSpan
from cige.tagging.selection import Selection

_AnySpan = TypeVar("_AnySpan", Span, ScoredSpan)
ENOUGH = 0.5  # a word is an entity if it is more probably one than not, whatever its type


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


def with_typed(
    spans: Sequence[ScoredSpan],
    typed: Sequence[ForcedSpan],
    probability: Callable[[int, int], float],
    labels: Collection[str],
    chosen: Selection,
) -> list[ScoredSpan]:
    """The entities of a sentence, in which typed words have the user's label and the score of any type.

    A typed word that overlaps none of the entities is added if it is more probably an entity than not: the best tags
    may have none there because several types share the probability.

    Args:
        spans: the entities of the best tags.
        probability: the probability that [start, end) is an entity of any type.
        labels: the model's labels.
    """
    remaining = list(spans)
    for word in typed:
        name = chosen.name_of_word(word.label, labels)
        same = [span for span in remaining if (span.start, span.end) == (word.start, word.end)]
        overlaps = any(span.start < word.end and word.start < span.end for span in remaining)
        if overlaps and not same:
            continue
        any_type = probability(word.start, word.end)
        if not same and any_type < ENOUGH:
            continue
        remaining = [span for span in remaining if span not in same]
        if name is not None:
            remaining.append(ScoredSpan(word.start, word.end, name, chosen.score(any_type)))
    return sorted(remaining, key=lambda span: (span.start, span.end, span.label))


@lru_cache(maxsize=8)
def _columns(tags: tuple[str, ...]) -> list[int]:
    """The numbers of the tags of UNKNOWN_TYPE."""
    return [k for k, tag in enumerate(tags) if tag.partition("-")[2] == UNKNOWN_TYPE]


def without_unknown_type(
    emissions: np.ndarray, tags: Sequence[str], labels: Collection[str], lattices: Sequence[Lattice]
) -> np.ndarray:
    """float[B, T, L]: emissions that rule out UNKNOWN_TYPE in sentences without a user word of an unknown type.

    Args:
        emissions: float[B, T, L]; returned unchanged if nothing is ruled out.
        tags: the L tag names; labels: the labels that the model knows.
    """
    columns = _columns(tuple(tags))
    rows = [k for k, lattice in enumerate(lattices) if not _unknown_words(lattice, labels)] if columns else []
    if not rows:
        return emissions
    emissions = emissions.copy()
    emissions[np.ix_(rows, range(emissions.shape[1]), columns)] = -np.inf
    return emissions


def label_of_user_word(start: int, end: int, lattice: Lattice, labels: Collection[str]) -> str | None:
    """The label of a span [start, end) of UNKNOWN_TYPE: that of the user word with exactly this span or, if there is
    none, of the longest word that overlaps it (of several, the first). Only words whose label is not one of the model's
    `labels` are considered; None if none of them overlaps the span."""
    over = [word for word in _unknown_words(lattice, labels) if word[0] < end and word[1] > start]
    exact = [word for word in over if word[:2] == (start, end)]
    longest = max(over, key=lambda word: (word[1] - word[0], -word[0]), default=None)
    return exact[0][2] if exact else longest[2] if longest else None


def _unknown_words(lattice: Lattice, labels: Collection[str]) -> list[tuple[int, int, str]]:
    """(start, end, label) of the user words whose label the model does not have."""
    return [
        (int(lattice.words[row, 0]), int(lattice.words[row, 1]), label)
        for row, label in lattice.labelled_words
        if label not in labels
    ]
