"""Typed words: the model decides whether such a word is an entity, and the user which type it then has."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from cige.lexicon.rules import ForcedSpan
from cige.tagging.scored_span import ScoredSpan
from cige.tagging.selection import Selection

ENOUGH = 0.5  # a word is an entity if it is more probably one than not, whatever its type


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
