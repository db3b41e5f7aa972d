"""Sums: losses and right answers added up over batches, steps and processes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass


@dataclass(frozen=True)
class Sums:
    """What some batches gave.

    Attributes:
        mlm_loss, n_targets, n_right: over tokens to predict: summed loss, how many, how many were predicted.
        sentence_loss, n_labels, n_right_labels: the same over instances of two parts.
        n_tokens: tokens read, padding not counted.
    """

    mlm_loss: float = 0.0
    n_targets: float = 0.0
    n_right: float = 0.0
    sentence_loss: float = 0.0
    n_labels: float = 0.0
    n_right_labels: float = 0.0
    n_tokens: float = 0.0

    def __add__(self, other: Sums) -> Sums:
        return Sums(*map(float.__add__, self.values, other.values))

    @classmethod
    def of(cls, values: Sequence[float]) -> Sums:
        return cls(*map(float, values))

    @property
    def values(self) -> tuple[float, ...]:
        """All sums, in the order of the attributes."""
        return astuple(self)

    @property
    def mlm(self) -> tuple[float, float]:
        """(mean loss, accuracy 0..1); nan where nothing was asked."""
        return _share(self.mlm_loss, self.n_targets), _share(self.n_right, self.n_targets)

    @property
    def sentence(self) -> tuple[float, float]:
        """(mean loss, accuracy 0..1); nan where nothing was asked."""
        return _share(self.sentence_loss, self.n_labels), _share(self.n_right_labels, self.n_labels)


def per_cent(share: float) -> str:
    """0.123 as "12.3%", or "-" where nothing was asked (nan)."""
    return "-" if math.isnan(share) else f"{100 * share:.1f}%"


def _share(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")
