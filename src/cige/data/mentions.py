"""Mention replacement in training: an entity gives way to another of its label, so that the tagger learns contexts.

Dai and Adel, "An Analysis of Simple Data Augmentation for Named Entity Recognition", COLING 2020, §2 ("mention
replacement"). On a small training set the same few names come again and again, and a tagger knows them by heart; with
names exchanged between sentences it must read what stands around them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from cige.data.sentence import Sentence, Span


@dataclass(frozen=True)
class MentionRegime:
    """How often training replaces entities; zero, the default, never does."""

    sentence_prob: float = 0.0
    """Share of sentences in which entities are replaced at all."""
    entity_prob: float = 0.5
    """In such a sentence: probability that an entity is replaced."""


NEVER = MentionRegime()


class MentionPool:
    """The entities of some training sentences by label, as often as they occur there."""

    def __init__(self, sentences: Iterable[Sentence]):
        mentions: defaultdict[str, list[str]] = defaultdict(list)
        for sentence in sentences:
            for span in sentence.spans:
                mentions[span.label].append(sentence.text[span.start : span.end])
        self._mentions = dict(mentions)

    def replace(self, sentence: Sentence, regime: MentionRegime, rng: np.random.Generator) -> Sentence:
        """`sentence` with some entities replaced and its spans moved along; itself if none is.

        A replacement is drawn as often as it occurs, the entity's own text included.
        """
        if not sentence.spans or rng.random() >= regime.sentence_prob:
            return sentence
        parts: list[str] = []
        spans: list[Span] = []
        begin = n_chars = 0  # where the text not yet copied begins, and how much has been written
        for span in sentence.spans:
            between, mention = sentence.text[begin : span.start], sentence.text[span.start : span.end]
            if rng.random() < regime.entity_prob:
                others = self._mentions[span.label]
                mention = others[int(rng.integers(len(others)))]
            start = n_chars + len(between)
            spans.append(Span(start, start + len(mention), span.label))
            parts += [between, mention]
            begin, n_chars = span.end, start + len(mention)
        text = "".join(parts) + sentence.text[begin:]
        return sentence if text == sentence.text else Sentence(text, tuple(spans), sentence.line)
