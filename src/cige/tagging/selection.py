"""Selection: which of the entities that a model finds are reported, with which labels and scores."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from numbers import Real
from typing import Literal

from cige.entities.calibration import Calibration
from cige.entities.label_facts import LabelFacts
from cige.errors import ModelError, WordListWarning
from cige.text.normalize import fold_width

TYPES = ("fine", "coarse")
Types = Literal["fine", "coarse"]


@dataclass(frozen=True)
class Request:
    """The entities that a user requests; `EntityFinder.__call__` describes the values. Raises a ValueError if a value
    is out of range, or `labels` is a string."""

    min_score: float = 0.0
    labels: tuple[str, ...] | None = None
    types: Types = "fine"
    recall: float | None = None
    nested: bool = True

    @classmethod
    def of(
        cls,
        *,
        min_score: float = 0.0,
        labels: Iterable[str] | None = None,
        types: Types = "fine",
        recall: float | None = None,
        nested: bool = True,
    ) -> Request:
        """Create a request with these values, which are checked."""
        if isinstance(labels, str):
            raise ValueError(f"given labels={labels!r}; expected a list of labels, such as [{labels!r}]")
        if labels is not None and not isinstance(labels, Iterable):
            raise ValueError(f"given labels={labels!r}; expected a list of labels")
        listed = None if labels is None else tuple(labels)
        if not all(isinstance(label, str) for label in listed or ()):
            raise ValueError(f"given labels={list(listed or ())!r}; expected a list of labels, such as ['PER']")
        if not isinstance(min_score, Real) or not 0 <= min_score <= 1:
            raise ValueError(f"given min_score={min_score!r}; expected a probability from 0 to 1")
        if types not in TYPES:
            raise ValueError(f"given types={types!r}; expected one of {', '.join(map(repr, TYPES))}")
        if recall is not None and not (isinstance(recall, Real) and 0 < recall < 1):
            raise ValueError(f"given recall={recall!r}; expected a share between 0 and 1, such as 0.95")
        if not isinstance(nested, bool):
            raise ValueError(f"given nested={nested!r}; expected True or False")
        return cls(min_score, listed, types, recall, nested)


@dataclass(frozen=True)
class Selection:
    """A request as it applies to one model.

    Attributes:
        reported: label of the model -> label with which its entities are reported; other labels are not reported.
        min_score: entities with a lower score are not reported.
        thresholds: None for the best tag sequence; otherwise reported label -> the minimum probability, greater than 0,
            of spans that are reported even if they overlap others.
        calibration: converts probabilities to scores; None uses the probabilities as scores.
    """

    reported: Mapping[str, str]
    min_score: float = 0.0
    thresholds: Mapping[str, float] | None = None
    calibration: Calibration | None = None
    named: frozenset[str] | None = None
    """The labels that the user listed; None if all reported labels are requested."""
    nested: bool = False
    """Whether entities within others are reported, which the model must be able to find."""
    _lengths: tuple[Mapping[str, int], Mapping[str, int]] | None = field(
        init=False, default=None, compare=False, repr=False
    )

    @cached_property
    def families(self) -> Mapping[str, list[str]]:
        """Reported label -> the labels of the model that are reported under it."""
        families: dict[str, list[str]] = {}
        for label, name in self.reported.items():
            families.setdefault(name, []).append(label)
        return families

    @cached_property
    def is_fine(self) -> bool:
        """Whether the best tag sequence is asked for and no labels are reported as one."""
        return self.thresholds is None and all(len(labels) == 1 for labels in self.families.values())

    def score(self, probability: float) -> float:
        """The reported score, 0..1, of an entity with this probability."""
        return probability if self.calibration is None else self.calibration.score(probability)

    def name_of(self, label: str, labels: Collection[str]) -> str | None:
        """The label with which an entity is reported, or None if it is not reported.

        Args:
            labels: the labels of the model; other labels come from user words and are reported unchanged.
        """
        if label in labels:
            return self.reported.get(label)
        return label if self.named is None or label in self.named else None

    def name_of_word(self, label: str, labels: Collection[str]) -> str | None:
        """The label with which a user's forced or typed word is reported; `None` only if other labels were requested.

        Unlike `name_of`, it is the user's label where the model has the label and does not report it.
        """
        name = self.name_of(label, labels)
        return label if name is None and self.named is None else name

    def max_lengths(self, of_labels: Mapping[str, int]) -> Mapping[str, int]:
        """The maximum length of entities of each label, given the maximum lengths that a model has for its labels.

        It is the largest one of the labels that are reported as the same: a scene that is reported as a location may be
        as long as a location. A label that is not in the result has no maximum.
        """
        if self._lengths is not None and self._lengths[0] is of_labels:  # those of a model, at every batch
            return self._lengths[1]
        lengths = dict(of_labels)
        for labels in self.families.values():
            of_family = [of_labels.get(label) for label in labels]
            for label in labels:
                if None in of_family:
                    lengths.pop(label, None)
                else:
                    lengths[label] = max(n for n in of_family if n is not None)
        object.__setattr__(self, "_lengths", (of_labels, lengths))
        return lengths

    @property
    def overlapping(self) -> bool:
        """Whether reported entities may overlap."""
        return self.thresholds is not None or self.nested


def select(
    request: Request, labels: Collection[str], facts: LabelFacts, *, word_labels: Collection[str] = ()
) -> Selection:
    """The selection that a request means for a model with these labels.

    Args:
        word_labels: labels of user words, which may be requested too.

    Raises:
        ModelError: the model does not report a requested label, or has no calibration that reaches the requested
            recall.
    """
    named = set(request.labels or ())
    name_of = facts.coarse if request.types == "coarse" else facts.fine
    names = {label: name_of(label, labels, named=named) for label in labels}
    names_of = {label: name for label, name in names.items() if name is not None}
    check_names(named, {*names_of.values(), *word_labels}, f"with types={request.types!r} the model reports")
    reported = {label: name for label, name in names_of.items() if request.labels is None or name in named}
    coarse_is_fine = not facts.parents
    calibration = facts.calibration.get("fine" if coarse_is_fine else request.types)
    if request.recall is not None and facts.nested and calibration is None:
        raise ModelError(f"given recall={request.recall}; models of nested entities cannot be calibrated yet")
    thresholds = None if request.recall is None else _thresholds(request, calibration, set(reported.values()))
    return Selection(
        reported,
        request.min_score,
        thresholds,
        calibration,
        None if request.labels is None else frozenset(named),
        nested=request.nested and facts.nested,
    )


def warn_of_other_case(word_labels: frozenset[str], labels: Collection[str]) -> None:
    """Warn of labels of user words that differ from one of a model's `labels` by case or width alone.

    They are types of their own. The warning, a WordListWarning, always comes from the same line, so that Python shows
    it once for each label unless filters are changed.
    """
    if not word_labels:  # nearly always
        return
    for label, known in _meant(word_labels, tuple(labels)):
        message = f"user words have the label {label}, which is a type of its own"
        warnings.warn(f"{message}; if {known} is meant, give them that label", WordListWarning, stacklevel=1)


@lru_cache(maxsize=16)
def _meant(word_labels: frozenset[str], labels: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """(label of words, label of the model) for each label that differs from one of the model by case or width alone."""
    known = {fold_width(label).casefold(): label for label in labels}
    unknown = ((label, known.get(fold_width(label).casefold())) for label in sorted(word_labels.difference(labels)))
    return tuple((label, meant) for label, meant in unknown if meant is not None)


def with_silent_labels(request: Request, named: Collection[str], labels: Collection[str], facts: LabelFacts) -> Request:
    """The request, which also reports the silent labels among `named` unless it lists labels itself."""
    silent = facts.silent.intersection(named, labels)
    if not silent or request.labels is not None:
        return request
    return replace(request, labels=tuple(sorted(silent.union(select(request, labels, facts).families))))


def all_candidates(request: Request, labels: Collection[str], facts: LabelFacts, *, floor: float) -> Selection:
    """Like `select`, but for all spans with a probability of at least `floor`, and without calibration."""
    best = select(request, labels, facts)
    return Selection(best.reported, thresholds=dict.fromkeys(best.reported.values(), floor), nested=best.nested)


def best_uncalibrated(request: Request, labels: Collection[str], facts: LabelFacts) -> Selection:
    """Like `select`, but without calibration: scores are the probabilities of the model."""
    best = select(request, labels, facts)
    return Selection(best.reported, nested=best.nested)


def _thresholds(request: Request, calibration: Calibration | None, names: Collection[str]) -> dict[str, float]:
    assert request.recall is not None
    if calibration is None:
        raise ModelError(
            f"given recall={request.recall}; this model was not calibrated for types={request.types!r}, so nothing is "
            "known of its recall; `cige calibrate MODEL DATA` calibrates it on labelled sentences"
        )
    try:
        return {name: calibration.threshold(request.recall, name) for name in names}
    except ValueError as reason:
        raise ModelError(f"{reason}; ask for less, or calibrate it on more sentences") from None


def check_names(given: Collection[str], known: Collection[str], whose: str) -> None:
    """Raise a ModelError that suggests the nearest known name if one of the given labels is unknown."""
    if unknown := sorted(set(given) - set(known)):
        import difflib  # imported here, since only the error message needs it

        near = difflib.get_close_matches(unknown[0], known, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ModelError(f"no label {', '.join(unknown)}; {whose} {', '.join(sorted(known)) or 'none'}{hint}")
