"""Checkpoints as files."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from cige.engine.checkpoint import last_checkpoint, load_weights, new_checkpoint, read_state, save_weights
from cige.engine.history import Record, RunState
from cige.engine.plan import Place
from cige.errors import CigeError, ModelError

DONE = RunState(
    9, Place(1, 2), totals=[1.25, 4.0], seconds=2.0, records=[Record(7, 1, 0.1, {"loss": 2.5}, 3.0, {"f1": 0.5})]
)


def test_weights_there_and_back(tmp_path: Path) -> None:
    a, b = nn.Linear(3, 2), nn.Linear(3, 2)
    b.bias.requires_grad_(False)
    a.bias.requires_grad_(False)
    kept = b.bias.clone()
    save_weights(a, tmp_path / "w")
    load_weights(b, tmp_path / "w")
    assert torch.equal(a.weight, b.weight) and torch.equal(b.bias, kept)  # frozen ones are not in the file


def test_weights_of_another_network_are_refused(tmp_path: Path) -> None:
    save_weights(nn.Linear(3, 2), tmp_path / "w")
    for other in (nn.Linear(4, 2), nn.Linear(3, 2, bias=False), nn.Sequential(nn.Linear(3, 2))):
        with pytest.raises(ModelError, match="not the weights of this network"):
            load_weights(other, tmp_path / "w")
    with pytest.raises(ModelError, match="cannot be read"):
        load_weights(nn.Linear(3, 2), tmp_path / "none")


def test_a_new_checkpoint_takes_the_place_of_the_old(tmp_path: Path) -> None:
    assert last_checkpoint(tmp_path, origin="o") is None
    for step in (9, 10):
        with new_checkpoint(tmp_path, step, DONE, origin="o") as folder:
            (folder / "x").write_text("x")
    found = last_checkpoint(tmp_path, origin="o")
    assert found == tmp_path / "checkpoint-10" and read_state(found, RunState.from_dict) == DONE
    assert [p.name for p in tmp_path.iterdir()] == ["checkpoint-10"]
    with pytest.raises(ModelError, match="other data"):
        last_checkpoint(tmp_path, origin="p")


def test_what_fails_half_way_leaves_the_old_one(tmp_path: Path) -> None:
    with new_checkpoint(tmp_path, 9, DONE, origin="o"):
        pass
    with pytest.raises(CigeError, match=r"checkpoint-10 could not be written \(disk"):  # noqa: SIM117
        with new_checkpoint(tmp_path, 10, DONE, origin="o") as folder:
            (folder / "x").write_text("x")
            raise OSError("disk")
    assert [p.name for p in tmp_path.iterdir()] == ["checkpoint-9"]


def test_the_remains_of_a_kill_while_writing_are_swept_up(tmp_path: Path) -> None:
    (tmp_path / ".checkpoint-8.abc.part").mkdir()
    (tmp_path / "checkpoint-8").mkdir()
    with new_checkpoint(tmp_path, 9, DONE, origin="o"):
        pass
    assert [p.name for p in tmp_path.iterdir()] == ["checkpoint-9"]
