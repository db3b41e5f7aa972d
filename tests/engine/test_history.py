"""The state of a run: which record was best, when to stop, and JSON."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from cige.engine.history import Record, RunState
from cige.engine.plan import Place


def state(*scores: float | None) -> RunState:
    made = [
        Record(10 * k, k, 0.1, {"loss": 1.0}, 20.0, {} if score is None else {"f1": score, "recall": 1 - score}, 10.0)
        for k, score in enumerate(scores, start=1)
    ]
    return RunState(records=made)


def test_best_is_the_earliest_of_equals_by_the_first_score() -> None:
    assert state().best is None and state(None, None).best is None
    assert state(None, 0.5, 0.7, 0.7, 0.6).best.epoch == 3  # type: ignore[union-attr]
    assert state(0.0).best.epoch == 1  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("scores", "patience", "is_over"),
    [
        ((), 1, False),
        ((0.5, 0.4, 0.3), 0, False),
        ((0.5, 0.4, 0.3), 2, True),
        ((0.5, 0.4, 0.5), 2, True),
        ((0.5, 0.4, 0.6), 2, False),
        ((None, None, None), 1, False),
        ((0.5, None, 0.4), 2, False),
    ],
)
def test_patience(scores: tuple[float | None, ...], patience: int, is_over: bool) -> None:
    assert state(*scores).has_run_out_of(patience) is is_over


def test_json_and_seconds() -> None:
    made = state(None, 0.5)
    made.totals, made.place = [3.25, 1e-9], Place(2, 7)
    assert RunState.from_dict(json.loads(json.dumps(asdict(made)))) == made
    assert made.total_seconds == 60.0
