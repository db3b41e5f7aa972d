"""What a run has done so far, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cige.engine.plan import Place


@dataclass(frozen=True)
class Record:
    """What training and evaluation gave up to a step.

    Attributes:
        step: optimiser steps done.
        epoch: epochs done of the examples that are being read.
        learning_rate: of the last step.
        train: what the objective sums up of the steps since the last such record; {} where nothing was due.
        seconds: training since then; evaluating and saving are not counted.
        scores: of the evaluation, the deciding one first; {} where none was due.
        eval_seconds: it took.
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
        """The deciding score; a record without scores has none."""
        return next(iter(self.scores.values()))


@dataclass
class RunState:
    """Where a run stands; with the weights and the optimiser's state, all that decides how it continues.

    Attributes:
        step: optimiser steps done.
        place: in the data.
        totals: what the objective counted since the last record of training.
        seconds: of training since then.
        records: in order.
    """

    step: int = 0
    place: Place = field(default_factory=Place)
    totals: list[float] = field(default_factory=list)
    seconds: float = 0.0
    records: list[Record] = field(default_factory=list)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RunState:
        """What `dataclasses.asdict` gave."""
        records = [Record(**record) for record in values["records"]]
        return cls(**{**values, "place": Place(*values["place"]), "records": records})

    @property
    def scored(self) -> list[Record]:
        """The records with scores."""
        return [record for record in self.records if record.scores]

    @property
    def best(self) -> Record | None:
        """The record with the highest deciding score, the earliest of equals."""
        return max(self.scored, key=lambda record: record.score, default=None)

    @property
    def total_seconds(self) -> float:
        """Training and evaluation up to the last record, over all sittings."""
        return sum(record.seconds + record.eval_seconds for record in self.records)

    def has_run_out_of(self, patience: int) -> bool:
        """Whether `patience` evaluations in a row brought nothing better (0: never)."""
        best = self.best
        return bool(patience) and best is not None and len(self.scored) - 1 - self.scored.index(best) >= patience
