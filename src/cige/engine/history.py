"""The history and state of a run, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cige.engine.plan import Place


@dataclass(frozen=True)
class Record:
    """The results of training and evaluation at a step.

    Attributes:
        step: number of optimiser steps done; epoch: number of epochs done of the current examples.
        learning_rate: learning rate of the last step.
        train: the objective's summary of the steps since the last such record; {} if none was due. seconds: time of
            training since then, without evaluation and saving.
        scores: scores of the evaluation, the deciding one first; {} if none was due. eval_seconds: its time.
    """

    step: int
    epoch: int
    learning_rate: float
    train: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    scores: Mapping[str, float] = field(default_factory=dict)
    eval_seconds: float = 0.0

    @property
    def score(self) -> float:
        """The deciding score, which records without scores do not have."""
        return next(iter(self.scores.values()))


@dataclass
class RunState:
    """The state of a run; with the weights and the optimiser's state, it determines how the run continues.

    Attributes:
        step: number of optimiser steps done; place: position in the data.
        totals: sums of the objective since the last record of training; seconds: time of training since then.
        records: the records so far, in order.
    """

    step: int = 0
    place: Place = field(default_factory=Place)
    totals: list[float] = field(default_factory=list)
    seconds: float = 0.0
    records: list[Record] = field(default_factory=list)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RunState:
        """Restore a state from the result of `dataclasses.asdict`.

        Raises:
            ValueError, TypeError, LookupError, AttributeError: it has another form.
        """
        records = [Record(**record) for record in values["records"]]
        made = cls(**{**values, "place": Place(*values["place"]), "records": records})
        counts = [made.step, *made.place, *(n for record in records for n in (record.step, record.epoch))]
        numbers = [made.seconds, *made.totals]
        for record in records:
            numbers += [record.learning_rate, record.seconds, record.eval_seconds, *record.train.values()]
            numbers += record.scores.values()
        if not all(type(n) is int and 0 <= n < 1 << 62 for n in counts):
            raise ValueError("a step, an epoch or a batch that is no whole number from 0 on")
        if not all(type(x) in (int, float) for x in numbers):
            raise ValueError("a time or a score that is no number")
        return made

    @property
    def scored(self) -> list[Record]:
        """The records with scores."""
        return [record for record in self.records if record.scores]

    @property
    def best(self) -> Record | None:
        """The record with the highest deciding score, and the earliest one among equals."""
        return max(self.scored, key=lambda record: record.score, default=None)

    @property
    def total_seconds(self) -> float:
        """Time of training and evaluation up to the last record, including runs that were interrupted."""
        return sum(record.seconds + record.eval_seconds for record in self.records)

    def has_run_out_of(self, patience: int) -> bool:
        """Whether the last `patience` evaluations brought no improvement (never if 0)."""
        best = self.best
        return bool(patience) and best is not None and len(self.scored) - 1 - self.scored.index(best) >= patience
