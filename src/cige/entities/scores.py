"""Scores: precision, recall and F1 of predicted entities, in total and for groups of entities.

An entity is found if its span and its type are correct (strict; equal to seqeval's strict mode for tags). Span F and
Type Acc are those of Table 3 of the FLAT paper: the first ignores types, and the second is the share of entities with a
correct span that also have the correct type. The span of an entity with gaps is all of its parts, and several entities
of one span, which differ in type, are counted one by one. Ratios whose denominator is 0 are 0, as in seqeval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypedDict

from cige.data.sentence import Sentence, Span
from cige.data.tags import lenient_spans
from cige.errors import DataError
from cige.text.normalize import normalize

LENGTH_BINS = ((0, 20), (21, 50), (51, 100), (101, 200))  # characters per sentence, inclusive; then longer ones
_BIN_NAMES = [*(f"{first}-{last}" for first, last in LENGTH_BINS), f"{LENGTH_BINS[-1][1] + 1}+"]


class Labelled(Protocol):
    """The interface of scored entities, such as Span and Entity."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def label(self) -> str: ...


@dataclass(frozen=True)
class Counts:
    """Numbers of gold entities, of predicted entities, and of entities that are both."""

    n_gold: int = 0
    n_predicted: int = 0
    n_correct: int = 0

    @property
    def precision(self) -> float:
        """Share of the predicted entities that are correct, 0..1."""
        return _ratio(self.n_correct, self.n_predicted)

    @property
    def recall(self) -> float:
        """Share of the gold entities that were found, 0..1."""
        return _ratio(self.n_correct, self.n_gold)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, 0..1."""
        return _ratio(2 * self.n_correct, self.n_gold + self.n_predicted)

    def to_dict(self) -> dict[str, float | int]:
        """precision, recall and f1, and the counts `support` (gold entities) and `predicted`."""
        return {
            "precision": self.precision,
            "recall": self.recall,
            "f1": self.f1,
            "support": self.n_gold,
            "predicted": self.n_predicted,
        }


class ReportJson(TypedDict, total=False):
    """Scores as JSON (`Report.to_dict`); groups and the lenient score only if they were computed."""

    f1: float
    precision: float
    recall: float
    span_f1: float
    type_accuracy: float
    n_sentences: int
    n_gold: int
    n_predicted: int
    per_type: dict[str, dict[str, float | int]]
    by_length: dict[str, dict[str, float | int]]
    by_lexicon: dict[str, dict[str, float | int]]
    by_seen: dict[str, dict[str, float | int]]
    by_repeated: dict[str, dict[str, float | int]]
    lenient_f1: float


@dataclass(frozen=True)
class Report:
    """All scores of one set of predictions.

    In each group, recall is that of its gold entities, and precision that of its predicted entities. The groups
    `by_length`, `by_lexicon`, `by_seen` and `by_repeated` are empty unless `score` has the arguments that they need.

    Attributes:
        n_sentences: number of sentences.
        overall: scores of spans with types; span: scores of spans without types.
        per_type: scores by label, sorted.
        by_length: scores by sentence length in characters.
        by_lexicon: scores by whether the text of an entity is a word of the lexicon.
        by_seen: scores by whether the text of an entity is that of an entity in the training data.
        by_repeated: scores by whether the whole sentence is one of the training data.
        lenient: scores of the scorer of the published lattice models, or None.
    """

    n_sentences: int
    overall: Counts
    span: Counts
    per_type: dict[str, Counts]
    by_length: dict[str, Counts] = field(default_factory=dict)
    by_lexicon: dict[str, Counts] = field(default_factory=dict)
    by_seen: dict[str, Counts] = field(default_factory=dict)
    by_repeated: dict[str, Counts] = field(default_factory=dict)
    lenient: Counts | None = None

    @property
    def precision(self) -> float:
        """Strict precision over all types, 0..1."""
        return self.overall.precision

    @property
    def recall(self) -> float:
        """Strict recall over all types, 0..1."""
        return self.overall.recall

    @property
    def f1(self) -> float:
        """Strict F1 over all types, 0..1."""
        return self.overall.f1

    @property
    def span_f1(self) -> float:
        """Span F of Table 3, 0..1."""
        return self.span.f1

    @property
    def type_accuracy(self) -> float:
        """Type Acc of Table 3, 0..1; 0 if no span is correct."""
        return _ratio(self.overall.n_correct, self.span.n_correct)

    def to_dict(self) -> ReportJson:
        """The scores as JSON values, without empty groups."""
        result: ReportJson = {
            "f1": self.f1,
            "precision": self.precision,
            "recall": self.recall,
            "span_f1": self.span_f1,
            "type_accuracy": self.type_accuracy,
            "n_sentences": self.n_sentences,
            "n_gold": self.overall.n_gold,
            "n_predicted": self.overall.n_predicted,
            "per_type": _to_dicts(self.per_type),
        }
        for name in ("by_length", "by_lexicon", "by_seen", "by_repeated"):
            if group := getattr(self, name):
                result[name] = _to_dicts(group)  # type: ignore[literal-required]
        if self.lenient is not None:
            result["lenient_f1"] = self.lenient.f1
        return result


def score(
    gold: Sequence[Iterable[Labelled]],
    predicted: Sequence[Iterable[Labelled]],
    *,
    texts: Sequence[str] | None = None,
    lexicon_words: Container[str] | Callable[[str], bool] | None = None,
    train_surfaces: Container[str] | None = None,
    train_texts: Container[str] | None = None,
    predicted_tags: Sequence[Sequence[str]] | None = None,
    scheme: str = "BMES",
) -> Report:
    """Compare the gold and the predicted entities of each sentence; an entity that occurs twice counts once. Raises a
    DataError if the lists have different lengths, or `texts` is needed but missing.

    Args:
        texts: the sentences, for scores by length and for the next three arguments.
        lexicon_words: a set of words, a Lexicon, or a function, with which normalised texts of entities are looked up.
        train_surfaces: the texts of entities in the training data, see `surfaces`.
        train_texts: the texts of the sentences of the training data.
        predicted_tags, scheme: the tags from which the predictions come, for the lenient score.
    """
    for name, other in {"predicted": predicted, "texts": texts, "predicted_tags": predicted_tags}.items():
        if other is not None and len(other) != len(gold):
            raise DataError(f"gold has {len(gold)} sentences, {name} has {len(other)}; they must be in step")
    if texts is None and any(wanted is not None for wanted in (lexicon_words, train_surfaces, train_texts)):
        raise DataError("scores by surface or by text need the texts= of the sentences")
    gold_keys, predicted_keys = _keys(gold), _keys(predicted)
    two_groups = partial(_two_groups, gold_keys, predicted_keys)

    groups: dict[str, dict[str, Counts]] = {}
    if texts is not None:
        bins = [_BIN_NAMES[sum(len(text) > last for _, last in LENGTH_BINS)] for text in texts]
        by_length = _grouped(gold_keys, predicted_keys, lambda key: bins[key[0]])
        groups["by_length"] = {name: by_length.get(name, Counts()) for name in _BIN_NAMES if name in set(bins)}
        if lexicon_words is not None:
            has_word = lexicon_words.__contains__ if isinstance(lexicon_words, Container) else lexicon_words
            groups["by_lexicon"] = two_groups("in lexicon", lambda key: has_word(normalize(_surface(key, texts))))
        if train_surfaces is not None:
            groups["by_seen"] = two_groups("in training", lambda key: _surface(key, texts) in train_surfaces)
        if train_texts is not None:
            groups["by_repeated"] = two_groups("in sentences of training", lambda key: texts[key[0]] in train_texts)
    return Report(
        n_sentences=len(gold),
        overall=_count(gold_keys, predicted_keys),
        span=_count_spans(gold_keys, predicted_keys),
        per_type=dict(sorted(_grouped(gold_keys, predicted_keys, lambda key: key[1].label).items())),
        lenient=None
        if predicted_tags is None
        else _count(gold_keys, _keys([lenient_spans(tags, scheme) for tags in predicted_tags])),
        **groups,
    )


def surfaces(sentences: Iterable[Sentence]) -> set[str]:
    """The texts of the entities of labelled sentences; that of an entity with gaps is the text of its parts."""
    return {span.text_in(sentence.text) for sentence in sentences for span in sentence.spans}


_Key = tuple[int, Span]  # the number of a sentence, and an entity of it


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _to_dicts(group: dict[str, Counts]) -> dict[str, dict[str, float | int]]:
    return {name: counts.to_dict() for name, counts in group.items()}


def parts_of(span: Labelled) -> tuple[tuple[int, int], ...]:
    """The parts of a discontinuous entity; () for others."""
    return getattr(span, "parts", ())


def span_of(entity: Labelled) -> Span:
    """The span of a scored entity, without what else it has."""
    return Span(entity.start, entity.end, entity.label, parts_of(entity))


def _keys(entities: Sequence[Iterable[Labelled]]) -> set[_Key]:
    return {(number, span_of(entity)) for number, sentence in enumerate(entities) for entity in sentence}


def _count(gold: set[Any], predicted: set[Any]) -> Counts:
    return Counts(len(gold), len(predicted), len(gold & predicted))


def _count_spans(gold: set[_Key], predicted: set[_Key]) -> Counts:
    """The counts without types; of several entities of one span, as many are correct as both sides have."""
    ours, theirs = (Counter((number, s.start, s.end, s.parts) for number, s in keys) for keys in (gold, predicted))
    return Counts(len(gold), len(predicted), (ours & theirs).total())


def _surface(key: _Key, texts: Sequence[str]) -> str:
    number, span = key
    return span.text_in(texts[number])


def _grouped(gold: set[_Key], predicted: set[_Key], group_of: Callable[[_Key], str]) -> dict[str, Counts]:
    """The counts of each group; an entity and its correct prediction are in the same group."""
    groups: dict[str, tuple[set[_Key], set[_Key]]] = {}
    for side, keys in enumerate((gold, predicted)):
        for key in keys:
            groups.setdefault(group_of(key), (set(), set()))[side].add(key)
    return {name: _count(*sides) for name, sides in groups.items()}


def _two_groups(gold: set[_Key], predicted: set[_Key], where: str, is_in: Callable[[_Key], bool]) -> dict[str, Counts]:
    names = {True: where, False: f"not {where}"}
    groups = _grouped(gold, predicted, lambda key: names[bool(is_in(key))])
    return {name: groups.get(name, Counts()) for name in names.values()}
