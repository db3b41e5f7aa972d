"""Label raw text with trusted words of lists and with the model's predictions of its own types.

Each occurrence of a listed word is labelled with the probability that it names an entity, so that a tagger learns this
probability on average. Words that are not drawn are left open, like all text without a label.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cige.data.sentence import Sentence, Span
from cige.data.source_types import DOUBT, EITHER
from cige.distant.matching import TextWord
from cige.entities.entity import Entity

SURE_SCORE = 0.8  # minimum score of predictions of the model's own types that are used as labels


@dataclass(frozen=True)
class Candidate:
    """A span that may get a label, and the probability, 0..1, that the label is correct."""

    span: Span
    probability: float


def drawn_words(
    words: Iterable[TextWord],
    trust: Mapping[str, Mapping[str, float]],
    rng: np.random.Generator,
) -> list[Candidate]:
    """Draw the listed words of a text that are labelled as entities.

    `trust` is list name (a type) -> word -> probability, 0..1, that it is an entity. Lists are drawn independently; a
    word that is drawn for several types may have any of them in training.
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
    entities: Iterable[Entity],
    *,
    silent: frozenset[str] = frozenset(),
    learnt: Iterable[Entity] = (),
) -> Sentence:
    """A labelled sentence.

    Args:
        drawn: the result of `drawn_words`.
        entities: predicted entities of the model's own types. Those with a high score are kept, and others are marked
            as doubtful. If one overlaps a listed word, the word is kept if its probability is more than one half.
        silent: those of these types that are always replaced by overlapping listed words.
        learnt: entities of the new types that were predicted after an earlier round, which are always kept.
    """
    spans = [Span(e.start, e.end, e.label) for e in learnt]
    strong = [x.span for x in drawn if x.probability > 0.5 and not _meets(x.span, spans)]
    weak = [x.span for x in drawn if x.probability <= 0.5 and not _meets(x.span, spans)]
    spans += strong
    for entity in entities:
        is_sure = entity.score >= SURE_SCORE
        span = Span(entity.start, entity.end, entity.label if is_sure else entity.label + DOUBT)
        if not _meets(span, spans) and not (_meets(span, weak) and (entity.label in silent or not is_sure)):
            spans.append(span)
    spans += [span for span in weak if not _meets(span, spans)]
    return Sentence(text, tuple(sorted(spans)))


def _meets(span: Span, others: Iterable[Span]) -> bool:
    return any(span.start < other.end and other.start < span.end for other in others)
