"""What a run has done so far, epoch by epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


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


def best_epoch(history: Sequence[EpochRecord]) -> EpochRecord | None:
    """The record with the highest dev F1, the earliest of equals; None before the first score."""
    scored = [record for record in history if record.dev_f1 is not None]
    return max(scored, key=lambda record: (record.dev_f1, -record.epoch)) if scored else None


def is_finished(history: Sequence[EpochRecord], *, n_epochs: int, patience: int) -> bool:
    """All epochs are done, or `patience` scored epochs in a row brought nothing better."""
    if history and history[-1].epoch >= n_epochs:
        return True
    best = best_epoch(history)
    if not patience or best is None:
        return False
    return sum(r.dev_f1 is not None and r.epoch > best.epoch for r in history) >= patience
