"""Training a tagger and fine-tuning with two processes give what one process gives."""

from __future__ import annotations

from pathlib import Path

import pytest
import several_processes
import tiny_run
import tiny_tasks
import warm_process
from safetensors.torch import load_file

from cige.engine.run_folder import read_result
from cige.lattice_bert.tasks.finetune import TuningResult
from cige.training.train import TrainResult


def test_two_processes_do_what_one_does(tmp_path: Path, one_thread: None) -> None:
    tiny_run.write_data_folder(tmp_path / "tagging")
    tiny_tasks.pair_folder(tmp_path / "pairs")
    tiny_tasks.pretrained(dropout_prob=0.0).save(tmp_path / "model")
    alone = several_processes.both(tmp_path, tmp_path / "alone")
    shared = tmp_path / "shared"
    assert warm_process.exit_codes(2, several_processes.both, tmp_path, shared) == [0, 0]
    together = read_result(shared / "tagger", TrainResult), read_result(shared / "tuned", TuningResult)
    for one, two in zip(alone, together, strict=True):
        for a, b in zip(one.history, two.history, strict=True):
            assert b.train["loss"] == pytest.approx(a.train["loss"], abs=1e-3)
            assert b.scores == pytest.approx(dict(a.scores), abs=1e-3)
        # The position of an encoder's weights in a folder differs between taggers and fine-tuned models.
        weights = [next(iter(sorted(result.model.rglob("model.safetensors")))) for result in (one, two)]
        first, second = map(load_file, weights)
        assert first.keys() == second.keys()
        for name, weight in first.items():  # by norm: Adam turns rounding of a gradient of zero into whole steps
            difference = second[name].double() - weight.double()
            assert difference.norm() <= 0.02 * weight.double().norm() + 1e-3, name
    assert together[0].machine["n_processes"] == 2
    assert (shared / "tuned/answers/dev.json").read_bytes() == (tmp_path / "alone/tuned/answers/dev.json").read_bytes()
