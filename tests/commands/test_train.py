"""`cige train` without a recipe: labelled data alone is enough."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tiny

from cige.cli import main
from cige.data import write_sentences

QUICK = ["--device", "cpu", "--set", "training.n_epochs=1"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_sentences(tmp_path / "my train.bmes", tiny.sentences(30, seed=1))
    write_sentences(tmp_path / "dev.bmes", tiny.sentences(12, seed=2))
    return tmp_path


def facts_of(run: Path) -> dict:
    return json.loads((run / "model" / "manifest.json").read_text(encoding="utf-8"))["facts"]["recipe"]


def test_data_and_dev(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["train", "--data", f"{data}/my train.bmes", "--dev", f"{data}/dev.bmes", "-o", f"{data}/run", *QUICK]
    assert main(argv) == 0
    assert "own-data, seed 1: dev F1" in capsys.readouterr().out
    recipe = facts_of(data / "run")
    assert recipe["start_from"] == "bundled" and recipe["data"]["dev"] == f"{data}/dev.bmes"
    assert main(["predict", "李明在南京市。", "--model", f"{data}/run/model"]) == 0


def test_paths_are_those_of_the_working_folder(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of the same name among the data sets is another file."""
    (data / "sets").mkdir()
    (data / "sets" / "我的 数据😀.jsonl").write_text("not this one", encoding="utf-8")
    write_sentences(data / "我的 数据😀.jsonl", tiny.sentences(30, seed=1))
    monkeypatch.chdir(data)
    monkeypatch.setenv("CIGE_DATA", str(data / "sets"))
    assert main(["train", "--data", "我的 数据😀.jsonl", "-o", "run", *QUICK]) == 0
    assert facts_of(data / "run")["data"]["train"] == f"{data}/我的 数据😀.jsonl"


def test_without_dev_the_last_tenth_is_held_out(data: Path) -> None:
    assert main(["train", "--data", f"{data}/my train.bmes", "-o", f"{data}/run", *QUICK]) == 0
    assert facts_of(data / "run")["data"]["n_held_out"] == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "give a recipe, or --data FILE"),
        (["--dev", "dev.bmes"], "--dev requires --data"),
        (["--data", "one.bmes"], "expected two or more"),
        (["--data", "none.bmes", "--dev", "dev.bmes"], "none.bmes"),
    ],
)
def test_what_is_missing_is_told(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    monkeypatch.chdir(data)
    write_sentences(data / "one.bmes", tiny.sentences(1))
    assert main(["train", *options, "--output", "run"]) == 2
    assert message in capsys.readouterr().err
