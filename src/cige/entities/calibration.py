"""Calibration: how often predictions of a given probability are correct, and thresholds for a given recall.

Scores are calibrated by isotonic regression (Zadrozny and Elkan 2002) of correctness on the model's probability.
Thresholds come from split conformal prediction (Vovk et al. 2005), per label if there are enough entities.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

LEVELS = (*(k / 100 for k in range(50, 100)), 0.995, 0.999)
"""The values of recall for which there are thresholds."""
MIN_OF_LABEL = 100  # minimum number of entities for thresholds of a label
MAX_KNOTS, MIN_IN_KNOT = 40, 25
N_BINS = 15


@dataclass(frozen=True)
class Calibration:
    """The calibration of a model on labelled sentences that were not used for training.

    Attributes:
        knots: (probability of the model, share of correct predictions), both ascending; values between knots are
            interpolated.
        thresholds: recall -> the lowest probability of spans that must be reported for this recall over all labels.
        label_thresholds: label -> thresholds for its entities, if there were enough of them.
        n_entities: number of labelled entities.
    """

    knots: tuple[tuple[float, float], ...]
    thresholds: Mapping[float, float] = field(default_factory=dict)
    label_thresholds: Mapping[str, Mapping[float, float]] = field(default_factory=dict)
    n_entities: int = 0

    def score(self, probability: float) -> float:
        """The share, 0..1, of correct predictions among those with this probability; it does not decrease."""
        given, right = self._ascending
        k = bisect_right(given, probability) - 1
        if k < 0 or k == len(given) - 1 or given[k] == probability:
            return right[max(k, 0)]
        # the operations of numpy.interp, which would convert all knots for each score
        return (right[k + 1] - right[k]) / (given[k + 1] - given[k]) * (probability - given[k]) + right[k]

    @cached_property
    def _ascending(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        given, right = zip(*self.knots, strict=True)
        return tuple(map(float, given)), tuple(map(float, right))

    def threshold(self, recall: float, label: str) -> float:
        """The lowest probability, 0..1, of spans of `label` that must be reported for this recall. Raises a ValueError
        if there were too few labelled sentences, or their probabilities are too low, for this recall."""
        for known in (self.label_thresholds.get(label, {}), self.thresholds):
            enough = [level for level in known if level >= recall - 1e-9]
            if enough:
                return known[min(enough)]
        highest = max(self.thresholds, default=0.0)
        raise ValueError(f"given recall={recall}; the calibration of this model reaches {highest:g}")

    def renamed(self, names: Mapping[str, str]) -> Calibration:
        """The same calibration with renamed labels."""
        thresholds = {names.get(label, label): levels for label, levels in self.label_thresholds.items()}
        return Calibration(self.knots, self.thresholds, thresholds, self.n_entities)

    def to_dict(self) -> dict[str, object]:
        """All fields as JSON values."""
        return {
            "knots": [list(knot) for knot in self.knots],
            "thresholds": _to_pairs(self.thresholds),
            "label_thresholds": {label: _to_pairs(levels) for label, levels in self.label_thresholds.items()},
            "n_entities": self.n_entities,
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Calibration:
        """The calibration that `to_dict` converted; raises a ValueError for other values."""
        try:
            knots = tuple((float(p), float(q)) for p, q in fields["knots"])
            thresholds = {float(level): float(p) for level, p in fields["thresholds"]}
            label_thresholds = {
                label: {float(level): float(p) for level, p in pairs}
                for label, pairs in fields["label_thresholds"].items()
            }
            n_entities = int(fields.get("n_entities", 0))
        except (KeyError, TypeError, AttributeError, OverflowError) as reason:
            raise ValueError(f"calibration: {type(reason).__name__} {reason}; calibrate the model again") from reason
        rising = all(a[0] < b[0] and a[1] <= b[1] for a, b in pairwise(knots))
        if not knots or not rising or not all(0 <= p <= 1 for knot in knots for p in knot):
            raise ValueError("calibration: its knots do not rise from 0 to 1; calibrate the model again")
        pairs = [pair for of_label in (thresholds, *label_thresholds.values()) for pair in of_label.items()]
        if not all(0 <= level <= 1 and 0 < p <= 1 for level, p in pairs):
            raise ValueError("calibration: its thresholds are not above 0 and at most 1; calibrate the model again")
        return cls(knots, thresholds, label_thresholds, n_entities)


def fit(candidates: Iterable[tuple[float, bool]], gold: Iterable[tuple[str, float]]) -> Calibration:
    """Calibrate a model by its predictions for labelled sentences. Raises a ValueError if `candidates` is empty.

    Args:
        candidates: the probability of each span that the model considered, and whether the span and its label are
            correct.
        gold: the label of each labelled entity, and its probability according to the model, which is 0 if the model did
            not consider it.
    """
    points = list(candidates)
    if not points:
        raise ValueError("the model found nothing in these sentences, so there is no score to calibrate")
    by_label: dict[str, list[float]] = {}
    for label, probability in gold:
        by_label.setdefault(label, []).append(probability)
    everything = [p for probabilities in by_label.values() for p in probabilities]
    return Calibration(
        knots=fit_knots(points),
        thresholds=conformal_thresholds(everything),
        label_thresholds={
            label: conformal_thresholds(probabilities)
            for label, probabilities in sorted(by_label.items())
            if len(probabilities) >= MIN_OF_LABEL
        },
        n_entities=len(everything),
    )


def fit_knots(points: Sequence[tuple[float, bool]]) -> tuple[tuple[float, float], ...]:
    """(mean probability, share correct) of up to MAX_KNOTS bins of equal size, pooled until they are ascending."""
    by_probability = np.array(sorted(points), np.float64)
    n_bins = max(1, min(MAX_KNOTS, len(points) // MIN_IN_KNOT))
    blocks = [
        [float(len(b)), float(b[:, 0].sum()), float(b[:, 1].sum())] for b in np.array_split(by_probability, n_bins)
    ]
    pooled: list[list[float]] = []
    for block in blocks:
        pooled.append(block)
        while len(pooled) > 1 and (
            pooled[-2][2] / pooled[-2][0] >= pooled[-1][2] / pooled[-1][0]
            or pooled[-2][1] / pooled[-2][0] >= pooled[-1][1] / pooled[-1][0]
        ):
            last = pooled.pop()
            pooled[-1] = [a + b for a, b in zip(pooled[-1], last, strict=True)]
    return tuple((round(p / n, 6), round(right / n, 6)) for n, p, right in _distinct(pooled))


def conformal_thresholds(probabilities: Sequence[float], levels: Sequence[float] = LEVELS) -> dict[float, float]:
    """Recall -> the threshold that the probability of a new entity reaches at least this often.

    The threshold is the k-th lowest of n probabilities, with k = floor((n + 1)(1 - recall)): a new entity from the same
    source is below it with a probability of at most 1 - recall. Recalls that cannot be reached are left out.
    """
    ordered = sorted(probabilities)
    thresholds = {}
    for level in levels:
        k = math.floor((len(ordered) + 1) * (1 - level) + 1e-9)
        if k >= 1 and ordered[k - 1] > 0:
            thresholds[level] = ordered[k - 1]
    return thresholds


@dataclass(frozen=True)
class Bin:
    """Entities with similar scores: their number, their mean score, and the share of correct ones."""

    n: int
    score: float
    right: float


def reliability(points: Sequence[tuple[float, bool]]) -> list[Bin]:
    """The bins of equal width in the score, 0..1, that contain any of the (score, is correct) points."""
    bins: dict[int, list[tuple[float, bool]]] = {}
    for point in points:
        bins.setdefault(min(N_BINS - 1, int(point[0] * N_BINS)), []).append(point)
    return [
        Bin(len(in_bin), sum(p for p, _ in in_bin) / len(in_bin), sum(right for _, right in in_bin) / len(in_bin))
        for _, in_bin in sorted(bins.items())
    ]


def expected_calibration_error(points: Sequence[tuple[float, bool]]) -> float:
    """Mean difference, 0..1, of score and share correct in bins of equal width, weighted by size (Guo et al. 2017)."""
    return sum(b.n * abs(b.score - b.right) for b in reliability(points)) / max(1, len(points))


def _distinct(pooled: list[list[float]]) -> list[list[float]]:
    """The blocks without those whose rounded mean is that of the previous one."""
    distinct: list[list[float]] = []
    for block in pooled:
        if not distinct or round(block[1] / block[0], 6) > round(distinct[-1][1] / distinct[-1][0], 6):
            distinct.append(block)
    return distinct


def _to_pairs(levels: Mapping[float, float]) -> list[list[float]]:
    return [[level, float(f"{p:.6g}")] for level, p in sorted(levels.items())]
