"""Analyses of fine-tuned models (Lai et al. 2021, §5): on which examples words help in addition to characters.

    TNEWS, other classification tasks  accuracy by length of the text
    CSL                                accuracy where keywords contain many lattice words, and on the rest
    MSRA NER                           wrong entities that are nested with gold entities

All functions count answers that models have already given; `answers` has one list per model, in the order of the
examples. The other models are compared with the first one. Runs of one model with several seeds are counted as separate
models, then combined by `groups_over_runs` and `errors_over_runs`.
"""

from __future__ import annotations

import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from cige.data.sentence import Sentence, Span
from cige.errors import DataError
from cige.lattice_bert.encoder.tokenizer import LatticeTokenizer
from cige.lattice_bert.tasks.examples import TextExample
from cige.lattice_bert.tasks.metrics import mean_and_sd
from cige.lattice_bert.tasks.registry import TASKS, Task

N_BINS = 5  # of equal size, as in the paper
MANY_WORDS = 2  # lattice words per keyword; a higher number counts as many
LENGTH, KEYWORDS, NESTED = "accuracy by length", "accuracy by words in keywords", "wrong entities nested with gold ones"
_TITLES_WITH_KEYWORDS = ("tnews", "tnews_toutiao")  # their second text is a list of keywords


@dataclass(frozen=True)
class Group:
    """A group of examples, and how many of them each model answered correctly, as the mean of its runs."""

    name: str
    n_examples: int
    n_correct: tuple[float, ...]
    sds: tuple[float, ...] = ()  # of each model's accuracy over its runs, 0..1; empty if each model has one run

    @property
    def accuracies(self) -> tuple[float | None, ...]:
        """Accuracy of each model, 0..1; None if there are no examples."""
        return tuple(n / self.n_examples if self.n_examples else None for n in self.n_correct)

    @property
    def gains(self) -> tuple[float | None, ...]:
        """Accuracy of each other model minus that of the first, -1..1; None if there are no examples."""
        first, *others = self.n_correct
        return tuple((n - first) / self.n_examples if self.n_examples else None for n in others)

    def to_dict(self) -> dict[str, object]:
        values = {"n_correct": self.n_correct, "accuracies": self.accuracies, "gains": self.gains, "sds": self.sds}
        lists = {name: list(of_models) for name, of_models in values.items() if name != "sds" or self.sds}
        return {"name": self.name, "n_examples": self.n_examples, **lists}


@dataclass(frozen=True)
class EntityErrors:
    """Counts of the entities that one model predicted, as means over its runs."""

    n_predicted: float
    n_wrong: float  # of these, not equal to a gold entity in span and type
    n_nested: float  # of the wrong ones, nested with a gold entity
    sds: tuple[float, ...] = ()  # of the three over the runs; empty if there is one run

    @property
    def counts(self) -> tuple[float, float, float]:
        return self.n_predicted, self.n_wrong, self.n_nested

    def to_dict(self) -> dict[str, object]:
        counts = {"n_predicted": self.n_predicted, "n_wrong": self.n_wrong, "n_nested": self.n_nested}
        return counts | ({"sds": list(self.sds)} if self.sds else {})


def analysis_of(task: Task) -> str:
    """LENGTH, KEYWORDS or NESTED, whichever suits a task; raises a DataError that lists the tasks if there is none."""
    if analysis := _suitable(task):
        return analysis
    lists: dict[str, list[str]] = {}
    for other in TASKS.values():
        if kind := _suitable(other):
            lists.setdefault(kind, []).append(other.name)
    known = "; ".join(f"{', '.join(names)} ({kind})" for kind, names in lists.items())
    raise DataError(f"there is no analysis of {task.name}; there is one of {known}")


def by_length(
    examples: Sequence[TextExample],
    answers: Sequence[Sequence[str]],
    *,
    length: Callable[[TextExample], int],
    edges: Sequence[int],
) -> list[Group]:
    """Accuracy by bins of length: below the first edge, between edges, and from the last edge upwards.

    Args:
        length: returns the length of an example in code points; see `length_of`.
        edges: in ascending order; `equal_edges` computes those of the paper's bins.

    Raises:
        DataError: the edges are not in ascending order, or there are not as many answers as examples.
    """
    if list(edges) != sorted(set(edges)):
        raise DataError(f"edges {', '.join(map(str, edges))}: expected numbers in ascending order")
    names = [_range_name(*bounds) for bounds in zip([None, *edges], [*edges, None], strict=True)]
    return _grouped(examples, answers, names, lambda example: names[bisect_right(edges, length(example))])


def equal_edges(lengths: Sequence[int], n_bins: int = N_BINS) -> list[int]:
    """Edges of `n_bins` bins of sizes as equal as possible, with all examples of one length in the same bin.

    If there are few different lengths, there are fewer bins; no bin is empty.
    """
    ordered = sorted(lengths)
    n_shorter = {length: bisect_left(ordered, length) for length in set(ordered)}
    cuts = [length for length, n in n_shorter.items() if n]
    wanted = [len(ordered) * k / n_bins for k in range(1, n_bins)]
    return sorted({min(cuts, key=lambda cut: (abs(n_shorter[cut] - n), cut)) for n in wanted}) if cuts else []


def length_of(task: Task) -> Callable[[TextExample], int]:
    """A function that returns the length of an example in code points, of both texts or, in TNEWS, of the title."""
    if task.name in _TITLES_WITH_KEYWORDS:
        return lambda example: len(example.first)
    return lambda example: len(example.first) + len(example.second or "")


def by_keyword_words(
    examples: Sequence[TextExample], answers: Sequence[Sequence[str]], tokenizer: LatticeTokenizer
) -> list[Group]:
    """Accuracy on examples whose keywords contain more than two lattice words on average, and on the rest.

    These are the paper's "instances, where LBERT identifies more than two word-level tokens from each candidate word
    averagely". An example without keywords belongs to the rest.
    """
    many, rest = f"more than {MANY_WORDS} words per keyword", "the rest"
    return _grouped(
        examples, answers, [many, rest], lambda e: many if words_per_keyword(e, tokenizer) > MANY_WORDS else rest
    )


def words_per_keyword(example: TextExample, tokenizer: LatticeTokenizer) -> float:
    """Mean number of vocabulary words in the keywords of a CSL example (its first text, separated by spaces).

    A keyword that is itself a word is counted too: 太阳能电池 has four (太阳, 太阳能, 电池 and itself). Word pieces do
    not count as words, not even those of several letters or digits.
    """
    lattices = [tokenizer.tokenize(keyword) for keyword in example.first.split()]
    return statistics.fmean(lattice.n_tokens - lattice.n_pieces for lattice in lattices) if lattices else 0.0


def nested_errors(examples: Sequence[Sentence], answers: Sequence[Sequence[Sequence[Span]]]) -> list[EntityErrors]:
    """Count the wrong entities of each model, and those of them that are nested with a gold entity.

    The paper counts "error cases where the predicted entities are nested with the golden ones". We count a predicted
    entity that equals no gold entity in span and type, and whose span strictly contains the span of a gold entity of
    any type, or lies strictly within one. A correct span with a wrong type is an error but not nested.
    """
    errors = []
    for model in answers:
        _check_step(examples, model)
        predicted = [(span, sentence.spans) for sentence, spans in zip(examples, model, strict=True) for span in spans]
        wrong = [(span, gold) for span, gold in predicted if span not in gold]
        n_nested = sum(any(_are_nested(span, other) for other in gold) for span, gold in wrong)
        errors.append(EntityErrors(len(predicted), len(wrong), n_nested))
    return errors


def groups_over_runs(groups: Sequence[Group], n_runs: Sequence[int]) -> list[Group]:
    """Combine groups that have one number per run into groups with one per model; `n_runs` is given per model."""
    if set(n_runs) == {1}:
        return list(groups)
    merged = []
    for group in groups:
        means, sds = zip(*map(mean_and_sd, _by_model(group.n_correct, n_runs)), strict=True)
        of_one = max(1, group.n_examples)
        merged.append(Group(group.name, group.n_examples, means, tuple(sd / of_one for sd in sds)))
    return merged


def errors_over_runs(errors: Sequence[EntityErrors], n_runs: Sequence[int]) -> list[EntityErrors]:
    """Combine the counts of each run into those of each model; `n_runs` is given per model."""
    if set(n_runs) == {1}:
        return list(errors)
    merged = []
    for runs in _by_model(errors, n_runs):
        predicted, wrong, nested = (mean_and_sd(counts) for counts in zip(*(run.counts for run in runs), strict=True))
        merged.append(EntityErrors(predicted[0], wrong[0], nested[0], (predicted[1], wrong[1], nested[1])))
    return merged


def _by_model(values: Sequence[Any], n_runs: Sequence[int]) -> list[list[Any]]:
    remaining = iter(values)
    return [list(islice(remaining, n)) for n in n_runs]


def reduction(before: float, after: float) -> float | None:
    """The relative reduction from `before` to `after`, at most 1; negative for an increase, None if `before` is 0."""
    return (before - after) / before if before else None


def _suitable(task: Task) -> str | None:
    if task.folders == TASKS["csl"].folders:
        return KEYWORDS
    return {"classification": LENGTH, "entities": NESTED}.get(task.kind)


def _grouped(
    examples: Sequence[TextExample],
    answers: Sequence[Sequence[Hashable]],
    names: Sequence[str],
    name_of: Callable[[TextExample], str],
) -> list[Group]:
    """One group per name, in the given order, and one of all examples."""
    for model in answers:
        _check_step(examples, model)
    members: dict[str, list[int]] = {name: [] for name in names}
    for number, example in enumerate(examples):
        members[name_of(example)].append(number)
    return [
        Group(name, len(numbers), tuple(sum(model[k] == examples[k].label for k in numbers) for model in answers))
        for name, numbers in [*members.items(), ("all", range(len(examples)))]
    ]


def _range_name(start: int | None, end: int | None) -> str:
    """The name of a half-open range of lengths; None means no limit."""
    if end is None:
        return f"{start} or more" if start is not None else "any length"
    if start is None:
        return f"up to {end - 1}"
    return f"{start}-{end - 1}" if end - start > 1 else str(start)


def _are_nested(a: Span, b: Span) -> bool:
    """Whether one span strictly contains the other."""
    outer, inner = (a, b) if a.end - a.start > b.end - b.start else (b, a)
    return outer.start <= inner.start and inner.end <= outer.end and inner.end - inner.start < outer.end - outer.start


def _check_step(examples: Sequence[Any], model: Sequence[Any]) -> None:
    if len(examples) != len(model):
        raise DataError(f"{len(examples)} examples and {len(model)} answers of a model; expected one per example")
