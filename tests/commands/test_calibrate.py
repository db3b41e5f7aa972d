"""`cige calibrate` on sentences that are too few for it; the arithmetic is tested in tests/tagging."""

from __future__ import annotations

import shutil

from cige.cli import main
from cige.folders.hub import model_folder
from cige.json_text import to_json


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
