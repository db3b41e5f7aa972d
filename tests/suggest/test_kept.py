"""A kept selection: what is taken up again, and damaged files, with which a selection begins anew."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cige.suggest.kept import KeptReading
from cige.suggest.selecting import Selector, Settings

TEXTS = ["南京市长江大桥通车", "上海的天气很好", "李明从北京到上海"]


def read(*texts: str) -> Selector:
    selector = Selector(Settings(2, "diversity"))
    selector.read(texts)
    return selector


def test_a_kept_selection_is_taken_up(tmp_path: Path) -> None:
    KeptReading(tmp_path / "kept", "f").keep(read(*TEXTS))
    again = read()
    assert KeptReading(tmp_path / "kept", "f").take_up(again)
    assert again.n_read == 3 and again.chosen() == read(*TEXTS).chosen()
    assert not KeptReading(tmp_path / "kept", "another").take_up(read())


@pytest.mark.parametrize(
    ("line", "changes"),
    [(0, {"n_read": None}), (0, {"n_read": -1}), (0, {"n_fitting": "2"}),
     (1, {0: None}), (1, {2: True}), (1, {5: [[1]]})],
)  # fmt: skip
def test_a_damaged_file_is_no_kept_selection(line: int, changes: dict, tmp_path: Path) -> None:
    path = tmp_path / "kept"
    KeptReading(path, "f").keep(read(*TEXTS))
    lines = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]
    for key, value in changes.items():
        lines[line][key] = value
    path.write_text("".join(f"{json.dumps(x)}\n" for x in lines), encoding="utf-8")
    begun = read()
    assert not KeptReading(path, "f").take_up(begun)
    begun.read(TEXTS)
    assert begun.n_read == 3 and len(begun.chosen()) == 2
