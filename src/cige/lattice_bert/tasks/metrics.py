"""Scores of the tasks, 0..1: accuracy, F1 of tags, entities and words, and the standard deviation over runs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from cige.data.sentence import Sentence, Span
from cige.data.tags import spans_to_tags
from cige.entities.scores import Counts, score
from cige.errors import DataError


def accuracy(gold: Sequence[object], predicted: Sequence[object]) -> float:
    """Share of correct answers; 0 if there are no answers. Raises DataError if the lists have different lengths."""
    if len(gold) != len(predicted):
        raise DataError(f"{len(gold)} gold answers and {len(predicted)} predicted answers; expected as many of each")
    return sum(a == b for a, b in zip(gold, predicted, strict=True)) / len(gold) if gold else 0.0


def tag_counts(gold: Sequence[Sentence], predicted: Sequence[Sequence[Span]]) -> Counts:
    """Counts of characters in entities or words by their BMES tags, for the paper's label-level F1.

    A character counts as correct if its tag is correct and not O, as in the released code.
    """
    n_gold = n_predicted = n_correct = 0
    for sentence, spans in zip(gold, predicted, strict=True):
        ours = spans_to_tags(len(sentence.text), sentence.spans)
        theirs = spans_to_tags(len(sentence.text), spans)
        n_gold += sum(tag != "O" for tag in ours)
        n_predicted += sum(tag != "O" for tag in theirs)
        n_correct += sum(a == b != "O" for a, b in zip(ours, theirs, strict=True))
    return Counts(n_gold, n_predicted, n_correct)


def span_counts(gold: Sequence[Sentence], predicted: Sequence[Sequence[Span]]) -> Counts:
    """Counts of entities or words with correct span and type, for entity-level F1 and F1 of segmentation."""
    return score([sentence.spans for sentence in gold], predicted).overall


def mean_and_sd(values: Sequence[float]) -> tuple[float, float]:
    """Mean and sample standard deviation, which is 0 for one value."""
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0
