"""What a fine-tuning run has done so far, epoch by epoch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class TunedEpoch:
    """One epoch.

    Attributes:
        epoch: from 1. step: optimiser steps done at its end.
        loss: mean over its training items.
        seconds: training; dev_seconds: answering the development examples.
        scores: of these, 0..1; the first one chooses the best epoch.
    """

    epoch: int
    step: int
    loss: float
    seconds: float
    dev_seconds: float
    scores: dict[str, float]

    @property
    def deciding(self) -> float:
        return next(iter(self.scores.values()))


@dataclass
class TuningHistory:
    """The finished epochs."""

    epochs: list[TunedEpoch] = field(default_factory=list)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TuningHistory:
        """What `dataclasses.asdict` gave."""
        return cls([TunedEpoch(**record) for record in values["epochs"]])

    @property
    def best(self) -> TunedEpoch | None:
        """The epoch with the highest score, the earliest of equals."""
        return max(self.epochs, key=lambda record: (record.deciding, -record.epoch)) if self.epochs else None
