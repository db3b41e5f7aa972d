"""`cige calibrate` on sentences that are too few for it; the arithmetic is tested in tests/tagging."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cige import load
from cige.cli import main
from cige.errors import ModelError
from cige.folders import hub
from cige.folders.hub import model_folder
from cige.folders.kinds import ONNX
from cige.json_text import to_json

EXAMPLES = str(Path(__file__).parents[2] / "examples/train.jsonl")


def test_one_sentence_leaves_none_to_compare_with(tmp_path, capsys):
    """Errors are those of sentences that a calibration was not fitted on, so a single one cannot be judged."""
    shutil.copytree(model_folder(None), tmp_path / "model")
    before = (tmp_path / "model" / "manifest.json").read_bytes()
    sentence = {
        "text": "罗氏公司总裁林晓岚从巴塞尔飞抵南京市长江大桥。",
        "entities": [{"start": 6, "end": 9, "label": "PER"}],
    }
    (tmp_path / "one.jsonl").write_text(to_json(sentence) + "\n", encoding="utf-8")
    assert main(["calibrate", str(tmp_path / "model"), str(tmp_path / "one.jsonl")]) == 2
    assert "give more labelled sentences" in capsys.readouterr().err
    assert (tmp_path / "model" / "manifest.json").read_bytes() == before


def test_a_copy_is_calibrated_and_the_model_stays(tmp_path, capsys):
    model, copy = model_folder(None), tmp_path / "copy"
    before = (model / "manifest.json").read_bytes()
    assert main(["calibrate", "bundled", EXAMPLES, "--domain", "own", "--output", str(copy)]) == 0
    assert f"{copy}: " in capsys.readouterr().out
    assert (model / "manifest.json").read_bytes() == before
    assert "own" in load(copy).label_facts.domains and "own" not in load(model).label_facts.domains
    assert main(["calibrate", str(copy), EXAMPLES, "--output", str(copy)]) == 2
    assert "the folder of the model itself, or in it" in capsys.readouterr().err
    assert main(["calibrate", str(copy), EXAMPLES, "--output", str(copy / "deeper")]) == 2
    assert "the folder of the model itself, or in it" in capsys.readouterr().err and not (copy / "deeper").exists()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "own.txt").write_text("mine")
    assert main(["calibrate", str(copy), EXAMPLES, "--output", str(tmp_path / "notes")]) == 2
    assert (tmp_path / "notes" / "own.txt").read_text() == "mine"


def test_a_change_of_the_installed_model_is_told(tmp_path, capsys, monkeypatch):
    shutil.copytree(model_folder(None), tmp_path / "model")
    argv = ["calibrate", str(tmp_path / "model"), EXAMPLES]
    assert main(argv) == 0
    assert "--output" not in capsys.readouterr().err
    monkeypatch.setitem(hub.SHIPPED, "bundled", tmp_path / "model")
    assert main(argv) == 0
    assert "is part of the installed cige" in capsys.readouterr().err


@pytest.mark.parametrize("kind", [ONNX, "cige tuned model"])
def test_a_precision_is_asked_for_only_where_there_is_a_choice(kind, tmp_path, capsys, monkeypatch):
    """Other models were refused for a precision that nobody had given, instead of being calibrated or told why not."""
    given = {}

    def opened(folder, **options):
        given.update(options)
        raise ModelError("as the kind decides")

    monkeypatch.setattr("cige.api.load", opened)
    (tmp_path / "manifest.json").write_text(to_json({"kind": kind}), encoding="utf-8")
    assert main(["calibrate", str(tmp_path), EXAMPLES]) == 2
    assert "as the kind decides" in capsys.readouterr().err and given["precision"] == "auto"
