"""The simulator of training: its arithmetic by hand, and the measurement that its rates were taken with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.parts.scaling_model import Job, Rates, simulate

STORED = Path(__file__).parents[3] / "docs/bench/scaling.json"


def test_it_predicts_the_stored_measurement() -> None:
    here = json.loads(STORED.read_text(encoding="utf-8"))["here"]
    rates = Rates(**{name: float("inf") if value is None else value for name, value in here["rates"].items()})
    predicted = simulate(Job(**here["job"]), rates).total
    assert predicted == pytest.approx(here["predicted"], rel=1e-2)
    assert predicted == pytest.approx(here["measured"], rel=0.15)


def test_without_workers_everything_adds_up() -> None:
    found = simulate(Job(10, 4), Rates(make=1, compute=2, update=3))
    assert (found.compute, found.batches, found.update, found.total) == (80, 40, 30, 150)


def test_workers_hide_what_they_make_unless_there_are_too_few() -> None:
    rates = Rates(make=1, compute=2, update=0)
    enough = simulate(Job(100, 4, n_workers=1), rates)
    assert enough.batches == 4 and enough.total == 804  # only the first batch is waited for
    slow = simulate(Job(100, 4, n_workers=1), Rates(make=3, compute=2, update=0))
    assert slow.total == pytest.approx(100 * 4 * 3 + 8)  # the worker's time, and the last passes
    assert simulate(Job(100, 4, n_workers=2), Rates(make=3, compute=2, update=0)).total < 830


def test_the_exchange_is_hidden_behind_passes_as_far_as_it_may_be() -> None:
    rates = {"make": 0, "compute": 1, "update": 0, "gradient": 8, "network": 1}
    assert simulate(Job(1, 4, n_processes=4), Rates(**rates)).exchange == 12  # 2 * 3/4 of 8 bytes
    assert simulate(Job(1, 4, n_processes=4), Rates(**rates, overlap=0.5)).exchange == 11  # the pass takes 1
    assert simulate(Job(1, 80, n_processes=4), Rates(**rates, overlap=0.5)).exchange == 6
    assert simulate(Job(1, 4), Rates(**rates)).exchange == 0


def test_windows_and_checkpoints() -> None:
    rates = Rates(make=0, compute=1, update=0, plan=0.5, state=8, copy=4, disk=2)
    found = simulate(Job(10, 2, window=10, save_every=5), rates)
    assert found.plan == 2 * 5  # of ten instances each
    assert found.checkpoint == 2 * 2 + 4  # both are copied, and the end waits until the second is written
    assert simulate(Job(10, 2, save_every=1), rates).checkpoint > 30  # each waits for the one before


def test_fewer_instances_than_processes() -> None:
    with pytest.raises(ValueError, match="3 instances for 4 processes"):
        simulate(Job(1, 3, n_processes=4), Rates(make=0, compute=0, update=0))
