"""Figures: means of what was asked, as plain data that goes through JSON unchanged."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from cige.engine.history import Record, RunState
from cige.json_text import to_json
from cige.lattice_bert.pretraining.objective import figures, per_cent


def test_means() -> None:
    found = figures([6.0, 4.0, 1.0, 3.0, 2.0, 2.0, 90.0])
    assert found == pytest.approx(
        {"mlm_loss": 1.5, "mlm_accuracy": 0.25, "sentence_loss": 1.5, "sentence_accuracy": 1.0, "n_tokens": 90.0}
    )


def test_what_was_not_asked_is_left_out() -> None:
    found = figures([6.0, 4.0, 1.0, 0.0, 0.0, 0.0, 90.0])
    assert set(found) == {"mlm_loss", "mlm_accuracy", "n_tokens"}
    assert (per_cent(found["mlm_accuracy"]), per_cent(found.get("sentence_accuracy"))) == ("25.0%", "-")
    state = RunState(records=[Record(1, 0, 0.1, found, scores=found)])
    assert RunState.from_dict(json.loads(to_json(asdict(state)))) == state
