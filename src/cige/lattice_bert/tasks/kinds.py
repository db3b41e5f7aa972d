"""Kinds of tasks: the head, its settings, and how answers are scored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from cige.lattice_bert.tasks import submission
from cige.lattice_bert.tasks.classification import ChoiceHead, ClassificationHead
from cige.lattice_bert.tasks.examples import ReadingExample
from cige.lattice_bert.tasks.items import Head
from cige.lattice_bert.tasks.metrics import accuracy, exact_match, f1, span_counts, tag_counts
from cige.lattice_bert.tasks.readers import WORD, count_misplaced
from cige.lattice_bert.tasks.reading import ReadingHead
from cige.lattice_bert.tasks.tagging import TaggingHead
from cige.recipes.settings import Settings

Scores = dict[str, float]


@dataclass(frozen=True)
class Kind:
    """A kind of task.

    Attributes:
        head: class of the head.
        score: (examples, answers) -> scores by name, 0..1; the first score chooses the best epoch and learning rate.
        write: (examples, answers) -> the content of a file of answers.
        settings: training examples -> the arguments of the head's constructor besides `width` and `dropout_prob`.
        is_labelled: whether an example has the correct answer.
        count: training examples -> counts to report with the results.
    """

    head: Callable[..., Head[Any, Any, Any]]
    score: Callable[[Sequence[Any], Sequence[Any]], Scores]
    write: Callable[[Sequence[Any], Sequence[Any]], str]
    settings: Callable[[Sequence[Any]], Settings] = lambda examples: {}
    is_labelled: Callable[[Any], bool] = lambda example: True
    count: Callable[[Sequence[Any]], dict[str, int]] = lambda examples: {}


def _f1(name: str) -> Callable[[Sequence[Any], Sequence[Any]], Scores]:
    """F1 of tags, by which the paper selects models, and of whole spans."""
    return lambda golds, spans: {"label_f1": tag_counts(golds, spans).f1, name: span_counts(golds, spans).f1}


KINDS = {
    "classification": Kind(
        head=ClassificationHead,
        settings=lambda examples: {"labels": _labels(examples)},
        score=lambda examples, answers: {"accuracy": accuracy([e.label for e in examples], answers)},
        is_labelled=lambda example: example.label is not None,
        write=submission.labels,
    ),
    "choice": Kind(
        head=ChoiceHead,
        score=lambda examples, answers: {"accuracy": accuracy([e.answer for e in examples], answers)},
        is_labelled=lambda example: example.answer is not None,
        write=submission.options,
    ),
    "reading": Kind(
        head=ReadingHead,
        score=lambda examples, answers: {
            name: _mean(measure(_texts(e), a.text) for e, a in zip(examples, answers, strict=True))
            for name, measure in (("f1", f1), ("em", exact_match))
        },
        is_labelled=lambda example: bool(example.answers),
        write=submission.texts,
        count=count_misplaced,
    ),
    "entities": Kind(
        head=TaggingHead,
        settings=lambda examples: {"labels": sorted({span.label for e in examples for span in e.spans})},
        score=_f1("entity_f1"),
        write=submission.entities,
    ),
    "segmentation": Kind(
        head=TaggingHead,
        settings=lambda examples: {"labels": [WORD], "has_outside": False},
        score=_f1("word_f1"),
        write=submission.words,
    ),
}


def _labels(examples: Sequence[Any]) -> list[str]:
    """All labels, sorted; numbers are sorted numerically."""
    return sorted({e.label for e in examples if e.label is not None}, key=lambda label: (len(label), label))


def _texts(example: ReadingExample) -> list[str]:
    return [answer.text for answer in example.answers]


def _mean(values: Iterable[float]) -> float:
    scores = list(values)
    return sum(scores) / len(scores) if scores else 0.0
