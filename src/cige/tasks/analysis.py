"""Analyses of tuned models (Lai et al. 2021, §5): on which examples words beside characters help, and on which not.

    TNEWS, other texts with a class   accuracy by length of the text
    CSL                               accuracy where keywords hold many lattice words, and on the rest
    MSRA NER                          wrong entities that are nested with gold ones

Everything here counts answers that models gave already; `answers` has a list for each model, in step with the examples.
The first model is what the others are compared with. Runs of a model with several seeds are counted as models and put
together by `groups_over_runs` and `errors_over_runs`.
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
from cige.lattice.tokenizer import LatticeTokenizer
from cige.tasks.examples import TextExample
from cige.tasks.metrics import mean_and_sd
from cige.tasks.registry import TASKS, Task

N_BINS = 5  # of equal size, as in the paper
MANY_WORDS = 2  # lattice words a keyword; more than these are many
LENGTH, KEYWORDS, NESTED = "accuracy by length", "accuracy by words in keywords", "wrong entities nested with gold ones"
_TITLES_WITH_KEYWORDS = ("tnews", "tnews_toutiao")  # their second text is no text but a list of keywords


@dataclass(frozen=True)
class Group:
    """Examples that belong together and how many of them each model answered rightly.

    Attributes:
        name: what they have in common.
        n_examples: how many there are.
        n_correct: one number for each model, the mean of its runs.
        sds: standard deviation of each model's accuracy over its runs, 0..1; empty where each ran once.
    """

    name: str
    n_examples: int
    n_correct: tuple[float, ...]
    sds: tuple[float, ...] = ()

    @property
    def accuracies(self) -> tuple[float | None, ...]:
        """Of each model, 0..1; None where there are no examples."""
        return tuple(n / self.n_examples if self.n_examples else None for n in self.n_correct)

    @property
    def gains(self) -> tuple[float | None, ...]:
        """Accuracy of each model but the first less that of the first, -1..1; None where there are no examples."""
        first, *others = self.n_correct
        return tuple((n - first) / self.n_examples if self.n_examples else None for n in others)

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "n_examples": self.n_examples,
            "n_correct": list(self.n_correct),
            "accuracies": list(self.accuracies),
            "gains": list(self.gains),
        } | ({"sds": list(self.sds)} if self.sds else {})


@dataclass(frozen=True)
class EntityErrors:
    """Counts of the entities that one model predicted, means over its runs.

    Attributes:
        n_predicted: all of them.
        n_wrong: those that no gold entity equals in span and type.
        n_nested: those of the wrong ones that are nested with a gold entity.
        sds: standard deviations of these three over the runs; empty where it ran once.
    """

    n_predicted: float
    n_wrong: float
    n_nested: float
    sds: tuple[float, ...] = ()

    @property
    def counts(self) -> tuple[float, float, float]:
        return self.n_predicted, self.n_wrong, self.n_nested

    def to_dict(self) -> dict[str, Any]:
        counts = {"n_predicted": self.n_predicted, "n_wrong": self.n_wrong, "n_nested": self.n_nested}
        return counts | ({"sds": list(self.sds)} if self.sds else {})


def analysis_of(task: Task) -> str:
    """LENGTH, KEYWORDS or NESTED, whichever suits a task; raises DataError, which lists the tasks, where none does."""
    found = _suitable(task)
    if found is None:
        lists: dict[str, list[str]] = {}
        for other in TASKS.values():
            if (kind := _suitable(other)) is not None:
                lists.setdefault(kind, []).append(other.name)
        known = "; ".join(f"{', '.join(names)} ({kind})" for kind, names in lists.items())
        raise DataError(f"there is no analysis of {task.name}; there is one of {known}")
    return found


def by_length(
    examples: Sequence[TextExample],
    answers: Sequence[Sequence[str]],
    *,
    length: Callable[[TextExample], int],
    edges: Sequence[int],
) -> list[Group]:
    """Accuracy in bins of length: below the first edge, from each edge to below the next, from the last edge on.

    Args:
        length: of an example, in code points; see `length_of`.
        edges: rising; those of the paper's bins are `equal_edges`.

    Raises:
        DataError: edges do not rise, or answers are not in step with examples.
    """
    if list(edges) != sorted(set(edges)):
        raise DataError(f"edges {', '.join(map(str, edges))}: expected numbers that rise")
    names = [_range_name(*bounds) for bounds in zip([None, *edges], [*edges, None], strict=True)]
    return _grouped(examples, answers, names, lambda example: names[bisect_right(edges, length(example))])


def equal_edges(lengths: Sequence[int], n_bins: int = N_BINS) -> list[int]:
    """Edges of `n_bins` bins whose sizes are as equal as they can be while examples of one length stay together.

    Few different lengths make fewer bins; none of them is empty.
    """
    ordered = sorted(lengths)
    n_shorter = {length: bisect_left(ordered, length) for length in set(ordered)}
    cuts = [length for length, n in n_shorter.items() if n]
    wanted = [len(ordered) * k / n_bins for k in range(1, n_bins)]
    return sorted({min(cuts, key=lambda cut: (abs(n_shorter[cut] - n), cut)) for n in wanted}) if cuts else []


def length_of(task: Task) -> Callable[[TextExample], int]:
    """How long an example of a task is, in code points: both texts of a pair, but only the title in TNEWS."""
    if task.name in _TITLES_WITH_KEYWORDS:
        return lambda example: len(example.first)
    return lambda example: len(example.first) + len(example.second or "")


def by_keyword_words(
    examples: Sequence[TextExample], answers: Sequence[Sequence[str]], tokenizer: LatticeTokenizer
) -> list[Group]:
    """Accuracy where the lattice has more than two words in a keyword on the average of an example's, and on the rest.

    The paper's "instances, where LBERT identifies more than two word-level tokens from each candidate word averagely".
    An example without keywords belongs to the rest.
    """
    many, rest = f"more than {MANY_WORDS} words a keyword", "the rest"
    return _grouped(
        examples, answers, [many, rest], lambda e: many if words_per_keyword(e, tokenizer) > MANY_WORDS else rest
    )


def words_per_keyword(example: TextExample, tokenizer: LatticeTokenizer) -> float:
    """Mean number of vocabulary words in the keywords of a CSL example: its first text, parted by spaces.

    A keyword that is itself a word counts as one: 太阳能电池 has four (太阳, 太阳能, 电池 and itself). Word
    pieces are no words, not even those of several letters or digits.
    """
    lattices = [tokenizer.tokenize(keyword) for keyword in example.first.split()]
    return statistics.fmean(lattice.n_tokens - lattice.n_pieces for lattice in lattices) if lattices else 0.0


def nested_errors(examples: Sequence[Sentence], answers: Sequence[Sequence[Sequence[Span]]]) -> list[EntityErrors]:
    """Wrong entities of each model, and those of them that are nested with a gold entity.

    The paper counts "error cases where the predicted entities are nested with the golden ones", and its example is a
    location found within an organization. Our reading: a predicted entity that equals no gold entity in span and type,
    and whose span strictly contains that of some gold entity of any type, or lies strictly within one. So a right span
    of a wrong type is an error but not nested; spans that only cross or touch are not either. Each predicted entity
    counts once.
    """
    found = []
    for model in answers:
        _check_step(examples, model)
        predicted = [(span, sentence.spans) for sentence, spans in zip(examples, model, strict=True) for span in spans]
        wrong = [(span, gold) for span, gold in predicted if span not in gold]
        n_nested = sum(any(_are_nested(span, other) for other in gold) for span, gold in wrong)
        found.append(EntityErrors(len(predicted), len(wrong), n_nested))
    return found


def groups_over_runs(groups: Sequence[Group], n_runs: Sequence[int]) -> list[Group]:
    """Groups with a number for each model out of groups with one for each run; `n_runs` of each model, in order."""
    if set(n_runs) == {1}:
        return list(groups)
    found = []
    for group in groups:
        means, sds = zip(*map(mean_and_sd, _by_model(group.n_correct, n_runs)), strict=True)
        of_one = max(1, group.n_examples)
        found.append(Group(group.name, group.n_examples, means, tuple(sd / of_one for sd in sds)))
    return found


def errors_over_runs(errors: Sequence[EntityErrors], n_runs: Sequence[int]) -> list[EntityErrors]:
    """The counts of each model out of those of each run; `n_runs` of each model, in order."""
    if set(n_runs) == {1}:
        return list(errors)
    found = []
    for runs in _by_model(errors, n_runs):
        predicted, wrong, nested = (mean_and_sd(counts) for counts in zip(*(run.counts for run in runs), strict=True))
        found.append(EntityErrors(predicted[0], wrong[0], nested[0], (predicted[1], wrong[1], nested[1])))
    return found


def _by_model(values: Sequence[Any], n_runs: Sequence[int]) -> list[list[Any]]:
    remaining = iter(values)
    return [list(islice(remaining, n)) for n in n_runs]


def reduction(before: float, after: float) -> float | None:
    """Share of `before` that is gone, 1 or less; negative where there are more. None where there was nothing."""
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
    """A group for each name, in their order, and one of all examples."""
    for model in answers:
        _check_step(examples, model)
    own: dict[str, list[int]] = {name: [] for name in names}
    for number, example in enumerate(examples):
        own[name_of(example)].append(number)
    return [
        Group(
            name,
            len(numbers),
            tuple(sum(model[k] == examples[k].label for k in numbers) for model in answers),
        )
        for name, numbers in [*own.items(), ("all", range(len(examples)))]
    ]


def _range_name(start: int | None, end: int | None) -> str:
    """Of a half-open range of lengths; None is no limit."""
    if end is None:
        return f"{start} or more" if start is not None else "any length"
    if start is None:
        return f"up to {end - 1}"
    return f"{start}-{end - 1}" if end - start > 1 else str(start)


def _are_nested(a: Span, b: Span) -> bool:
    """Whether one strictly contains the other."""
    outer, inner = (a, b) if a.end - a.start > b.end - b.start else (b, a)
    return outer.start <= inner.start and inner.end <= outer.end and inner.end - inner.start < outer.end - outer.start


def _check_step(examples: Sequence[Any], model: Sequence[Any]) -> None:
    if len(examples) != len(model):
        raise DataError(f"{len(examples)} examples and {len(model)} answers of a model; they must be in step")
