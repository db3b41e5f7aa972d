"""A checkpoint whose author means harm is refused with a ModelError, whatever its numbers claim."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import crafted_folders as crafted
import pytest
import torch
import toy
from safetensors import safe_open
from safetensors.torch import save_file

from cige.engine.checkpoint import load_weights
from cige.engine.state_files import StateFiles
from cige.errors import ModelError


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    toy.trainer(folder, n_steps=6, n_epochs=None).run(toy.Objective(n_epochs=None, n_steps=6), stop_at=0.0)
    return folder


@pytest.fixture
def checkpoint(run: Path, tmp_path: Path) -> Path:
    (found,) = Path(shutil.copytree(run, tmp_path / "run")).glob("checkpoint-*")
    return found


def refuses(checkpoint: Path, match: str = ".") -> None:
    crafted.sign(checkpoint)
    with pytest.raises(ModelError, match=match):
        toy.trainer(checkpoint.parent, n_steps=6, n_epochs=None).resume()


def test_the_checkpoint_itself_is_read(checkpoint: Path) -> None:
    crafted.sign(checkpoint)
    made = toy.trainer(checkpoint.parent, n_steps=6, n_epochs=None)
    made.resume()
    assert made.state.step >= 1


@pytest.mark.parametrize("n", ["99999999999", "x", "00000", "9" * 220])
def test_files_of_as_many_processes_as_the_name_says(checkpoint: Path, n: str) -> None:
    """The names of 10^11 files were made to be compared."""
    (state,) = checkpoint.glob("state-*")
    state.rename(state.with_name(f"state-00000-of-{n}.safetensors"))  # of at most 255 characters
    refuses(checkpoint, "files of the state")


ROWS: dict[str, Any] = {
    "a huge shape": [0, [1 << 60, 6]],
    "a shape of text": [0, ["4", "6"]],
    "no shape": [0, 7],
    "rows beyond the last": [3, None],
    "negative rows": [-1, None],
    "nothing": None,
    "a broadcast": [0, [40, 1]],
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_of_tensors(checkpoint: Path, name: str) -> None:
    (path,) = checkpoint.glob("state-*")
    with safe_open(path, framework="pt") as file:
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118  # not a dict
        rows = dict(file.metadata())
    key = max(tensors, key=lambda key: tensors[key].ndim)
    told = ROWS[name]
    if isinstance(told, list) and told[1] is None:
        told = [told[0], list(tensors[key].shape)]
    save_file(tensors, path, metadata=rows | {key: json.dumps(told)})
    refuses(checkpoint)


def test_a_tensor_that_is_told_of_and_not_there(checkpoint: Path) -> None:
    (path,) = checkpoint.glob("state-*")
    save_file({"a": torch.zeros(2)}, path, metadata={"a": "[0, [2]]", "b": "[0, [2]]"})
    with pytest.raises(ModelError, match="b is damaged"):
        StateFiles(checkpoint)


HISTORIES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a list": lambda state: [1],
    "a step as text": lambda state: state | {"step": "1"},
    "a negative step": lambda state: state | {"step": -5},
    "a step of many digits": lambda state: state | {"step": 10**400},
    "records that are none": lambda state: state | {"records": [7]},
    "a record without scores": lambda state: state | {"records": [{"step": 1, "epoch": 1, "learning_rate": "x"}]},
    "totals as text": lambda state: state | {"totals": ["a"]},
    "a place of three": lambda state: state | {"place": [1, 2, 3]},
    "an unknown key": lambda state: state | {"more": 1},
    "nested without end": lambda state: "[" * 5000,
}


@pytest.mark.parametrize("name", HISTORIES)
def test_histories(checkpoint: Path, name: str) -> None:
    path = checkpoint / "history.json"
    made = HISTORIES[name](json.loads(path.read_text(encoding="utf-8")))
    path.write_text(made if isinstance(made, str) else json.dumps(made), encoding="utf-8")
    refuses(checkpoint)


@pytest.mark.parametrize("text", ["[]", "7", "{}", '{"dict": 7}', '{"tensor": []}', '{"list": [[]]}', "[" * 5000])
def test_values(checkpoint: Path, text: str) -> None:
    (path,) = (path for path in checkpoint.glob("*.json") if path.name not in ("history.json", "manifest.json"))
    path.write_text(text, encoding="utf-8")
    refuses(checkpoint)


def test_weights_of_other_numbers(tmp_path: Path) -> None:
    save_file({"weight": torch.zeros(2, 3, dtype=torch.complex64), "bias": torch.zeros(2)}, tmp_path / "w")
    with pytest.raises(ModelError, match="does not fit"):
        load_weights(torch.nn.Linear(3, 2), tmp_path / "w")
