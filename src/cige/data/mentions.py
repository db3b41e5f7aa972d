"""Mention replacement in training: replace entities by others with the same label, so that the tagger learns contexts.

Dai and Adel, "An Analysis of Simple Data Augmentation for Named Entity Recognition", COLING 2020, §2 ("mention
replacement"). In a small training set, a few names occur again and again, and a tagger memorises them; if names are
exchanged between sentences, it must learn from their contexts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
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
        mentions: defaultdict[str, list[Sentence]] = defaultdict(list)
        for sentence in sentences:
            for span in sentence.spans:
                mentions[span.label].append(_mention(sentence, span))
        self._mentions = dict(mentions)

    def replace(self, sentence: Sentence, regime: MentionRegime, rng: np.random.Generator) -> Sentence:
        """The sentence with some entities replaced by random occurrences of entities with the same label, or `sentence`
        itself. Of nested entities, the outermost are replaced, together with those within them. A sentence in which
        entities overlap without being nested is left as it is."""
        if not sentence.spans or rng.random() >= regime.sentence_prob:
            return sentence
        outermost = _outermost(sentence.spans)
        if outermost is None:
            return sentence
        parts: list[str] = []
        spans: list[Span] = []
        begin = n_chars = 0  # the position from which text is still to be copied, and the length of the new text so far
        for span in outermost:
            between, mention = sentence.text[begin : span.start], _mention(sentence, span)
            if span.label != OPEN and rng.random() < regime.entity_prob:
                others = self._mentions[span.label]
                mention = others[int(rng.integers(len(others)))]
            start = n_chars + len(between)
            spans += [inner.shifted(start) for inner in mention.spans]
            parts += [between, mention.text]
            begin, n_chars = span.end, start + len(mention.text)
        text = "".join(parts) + sentence.text[begin:]
        return sentence if text == sentence.text else Sentence(text, tuple(sorted(spans)), sentence.line)


def _mention(sentence: Sentence, span: Span) -> Sentence:
    """The text of an entity, with its span and those within it."""
    inside = [inner for inner in sentence.spans if span.start <= inner.start and inner.end <= span.end]
    return Sentence(sentence.text[span.start : span.end], tuple(inner.shifted(-span.start) for inner in inside))


def _outermost(spans: Sequence[Span]) -> list[Span] | None:
    """The spans that are in no other, of equal ones the first; None if some overlap without being nested."""
    outer: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        if not outer or span.start >= outer[-1].end:
            outer.append(span)
        elif span.end > outer[-1].end:
            return None
    return outer
