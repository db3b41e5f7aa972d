"""History: which epoch was best, and when to stop."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from cige.training.history import EpochRecord, History


def history(*scores: float | None) -> History:
    return History([EpochRecord(k, 10 * k, 1.0, 0.1, 30.0, score) for k, score in enumerate(scores, start=1)])


def test_best_is_the_earliest_of_equals() -> None:
    assert history().best is None and history(None, None).best is None
    assert history(None, 0.5, 0.7, 0.7, 0.6).best.epoch == 3  # type: ignore[union-attr]
    assert history(0.0).best.epoch == 1  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("scores", "patience", "finished"),
    [
        ((), 0, False),
        ((0.5, 0.4, 0.3), 0, False),
        ((0.5, 0.4, 0.3), 2, True),
        ((0.5, 0.4, 0.5), 2, True),
        ((0.5, 0.4, 0.6), 2, False),
        ((None, None, None), 1, False),
        ((0.1, 0.2, 0.3, 0.4, 0.5), 0, True),
    ],
)
def test_finished(scores: tuple[float | None, ...], patience: int, finished: bool) -> None:
    assert history(*scores).is_finished(n_epochs=5, patience=patience) is finished


def test_json_and_minutes() -> None:
    made = history(None, 0.5)
    made.loss_sum, made.first_step = 3.25, 20
    assert History.from_dict(json.loads(json.dumps(asdict(made)))) == made
    assert made.minutes == 1.0
