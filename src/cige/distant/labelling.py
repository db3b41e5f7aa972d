"""Labels for raw text: listed words that are believed, what the model finds of its own types, and nothing else.

A listed word is labelled with the probability that it names an entity. To learn from such a draw is, in the mean over
its uses, to learn that probability; a word that is drawn nowhere is left open, as all text without a label is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cige.data.sentence import Sentence, Span
from cige.data.source_types import DOUBT, EITHER
from cige.distant.matching import TextWord
from cige.entities.entity import Entity

SURE_SCORE = 0.8  # from which on what the model finds of its own types is a label


@dataclass(frozen=True)
class Candidate:
    """A span that may get a label, and the probability that it has it, 0..1."""

    span: Span
    probability: float


def drawn_words(
    words: Iterable[TextWord],
    trust: Mapping[str, Mapping[str, float]],
    rng: np.random.Generator,
) -> list[Candidate]:
    """The listed words of a text that are taken for entities.

    Args:
        trust: list name (a type) -> word -> how far it is to be believed, 0..1. Lists are drawn one by one; a word
            that is drawn as of several types is of one of them, and training finds out which.
    """
    drawn = []
    for word in words:
        types = [name for name in word.lists if rng.random() < trust[name][word.text]]
        if types:
            probability = max(trust[name][word.text] for name in types)
            drawn.append(Candidate(Span(word.start, word.end, EITHER.join(sorted(types))), probability))
    return drawn


def labelled(
    text: str,
    drawn: Sequence[Candidate],
    own: Iterable[Entity],
    *,
    silent: frozenset[str] = frozenset(),
    learnt: Iterable[Entity] = (),
) -> Sentence:
    """A sentence with its labels.

    Args:
        drawn: what `drawn_words` gave.
        own: entities that the model found of the types that it has. Sure ones are kept as they are, the others are
            marked as doubtful. Where one overlaps a listed word, the word stays if it is likelier than not.
        silent: types of these that give way to any listed word.
        learnt: entities of the new types that an earlier round found; they stay wherever they are.
    """
    kept = [Span(e.start, e.end, e.label) for e in learnt]
    strong = [x.span for x in drawn if x.probability > 0.5 and not _meets(x.span, kept)]
    weak = [x.span for x in drawn if x.probability <= 0.5 and not _meets(x.span, kept)]
    kept += strong
    for entity in own:
        is_sure = entity.score >= SURE_SCORE
        span = Span(entity.start, entity.end, entity.label if is_sure else entity.label + DOUBT)
        if not _meets(span, kept) and not (_meets(span, weak) and (entity.label in silent or not is_sure)):
            kept.append(span)
    kept += [span for span in weak if not _meets(span, kept)]
    return Sentence(text, tuple(sorted(kept)))


def _meets(span: Span, others: Iterable[Span]) -> bool:
    return any(span.start < other.end and other.start < span.end for other in others)
