"""Mention replacement in training: replace entities by others with the same label, so that the tagger learns contexts.

Dai and Adel, "An Analysis of Simple Data Augmentation for Named Entity Recognition", COLING 2020, §2 ("mention
replacement"). In a small training set, a few names occur again and again, and a tagger memorises them; if names are
exchanged between sentences, it must learn from their contexts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from cige.data.sentence import OPEN, Sentence, Span


@dataclass(frozen=True)
class MentionRegime:
    """How often entities are replaced in training; never by default."""

    sentence_prob: float = 0.0
    """Share of sentences in which entities are replaced."""
    entity_prob: float = 0.5
    """Probability that an entity in such a sentence is replaced."""


NEVER = MentionRegime()


class MentionPool:
    """The entities of training sentences by label; frequent ones are drawn more often."""

    def __init__(self, sentences: Iterable[Sentence]):
        mentions: defaultdict[str, list[str]] = defaultdict(list)
        for sentence in sentences:
            for span in sentence.spans:
                mentions[span.label].append(sentence.text[span.start : span.end])
        self._mentions = dict(mentions)

    def replace(self, sentence: Sentence, regime: MentionRegime, rng: np.random.Generator) -> Sentence:
        """The sentence with some entities replaced and its spans adjusted, or `sentence` itself if none is replaced.

        The replacement is a random occurrence of an entity with the same label, possibly the entity itself.
        """
        if not sentence.spans or rng.random() >= regime.sentence_prob:
            return sentence
        parts: list[str] = []
        spans: list[Span] = []
        begin = n_chars = 0  # the position from which text is still to be copied, and the length of the new text so far
        for span in sentence.spans:
            between, mention = sentence.text[begin : span.start], sentence.text[span.start : span.end]
            if span.label != OPEN and rng.random() < regime.entity_prob:
                others = self._mentions[span.label]
                mention = others[int(rng.integers(len(others)))]
            start = n_chars + len(between)
            spans.append(Span(start, start + len(mention), span.label))
            parts += [between, mention]
            begin, n_chars = span.end, start + len(mention)
        text = "".join(parts) + sentence.text[begin:]
        return sentence if text == sentence.text else Sentence(text, tuple(spans), sentence.line)
