"""What a run has done so far, epoch by epoch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class EpochRecord:
    """One epoch.

    Attributes:
        epoch: from 1.
        step: optimiser steps done at its end.
        loss: mean training loss a step.
        learning_rate: at its end.
        seconds: training and scoring.
        dev_f1, dev_precision, dev_recall: strict, 0..1; None where dev was not scored.
    """

    epoch: int
    step: int
    loss: float
    learning_rate: float
    seconds: float
    dev_f1: float | None = None
    dev_precision: float | None = None
    dev_recall: float | None = None


@dataclass
class History:
    """The finished epochs and the one under way.

    Attributes:
        epochs: finished ones, in order.
        loss_sum: summed loss of the steps of the epoch under way.
        first_step: steps done when it began.
        seconds: spent on it.
    """

    epochs: list[EpochRecord] = field(default_factory=list)
    loss_sum: float = 0.0
    first_step: int = 0
    seconds: float = 0.0

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> History:
        """What `dataclasses.asdict` gave."""
        return cls(**{**values, "epochs": [EpochRecord(**record) for record in values["epochs"]]})

    @property
    def best(self) -> EpochRecord | None:
        """The epoch with the highest dev F1, the earliest of equals; None before the first score."""
        scored = [record for record in self.epochs if record.dev_f1 is not None]
        return max(scored, key=lambda record: (record.dev_f1, -record.epoch)) if scored else None

    @property
    def minutes(self) -> float:
        """Spent on the finished epochs."""
        return sum(record.seconds for record in self.epochs) / 60

    def is_finished(self, *, n_epochs: int, patience: int) -> bool:
        """All epochs are done, or `patience` scored epochs in a row brought nothing better (0: never)."""
        if self.epochs and self.epochs[-1].epoch >= n_epochs:
            return True
        best = self.best
        if not patience or best is None:
            return False
        return sum(r.dev_f1 is not None and r.epoch > best.epoch for r in self.epochs) >= patience
