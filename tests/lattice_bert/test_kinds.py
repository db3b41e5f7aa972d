"""Folders of Lattice-BERT, given where another kind was expected: what they are for is said."""

from __future__ import annotations

import json

import pytest
import tiny_lattice_bert

from cige import load
from cige.cli import main
from cige.errors import ModelError
from cige.folders.manifest import MANIFEST
from cige.lattice_bert.encoder.pretrained import PretrainedLatticeBert
from cige.lattice_bert.kinds import TUNED


@pytest.mark.parametrize("verb", ["predict", "explain"])
def test_a_pretrained_model_is_no_tagger_and_it_is_said_what_to_do_with_it(verb, tmp_path, capsys):
    tiny_lattice_bert.pretrained().save(tmp_path / "model")
    assert main([verb, "重庆", "--model", str(tmp_path / "model")]) == 2
    expected = "expected a cige model folder; fine-tune it (`cige lattice-bert finetune TASK --model`)"
    assert expected in capsys.readouterr().err


def test_in_python_too_it_is_said_who_reads_another_kind_of_model(tmp_path):
    tiny_lattice_bert.pretrained().save(tmp_path / "model")
    with pytest.raises(ModelError, match=r"or read it with PretrainedLatticeBert\.from_pretrained"):
        load(tmp_path / "model")
    (tmp_path / MANIFEST).write_text(json.dumps({"kind": TUNED}), encoding="utf-8")
    with pytest.raises(ModelError, match="the fine-tuned encoder is in its folder encoder/"):
        PretrainedLatticeBert.from_pretrained(tmp_path)
