"""What several verbs share: the model that --model names."""

from __future__ import annotations

import json

import pytest
import tiny_lattice_bert

from cige import load
from cige.cli import main
from cige.commands.options import PRETRAINED, TUNED
from cige.errors import ModelError
from cige.files import MANIFEST, USES
from cige.models import model, pretrained
from cige.serving import onnx_folder
from cige.tasks import tuned


def test_the_kinds_named_here_are_those_that_are_written():
    assert pretrained.KIND == PRETRAINED and tuned.KIND == TUNED
    assert {pretrained.KIND, tuned.KIND, model.KIND, onnx_folder.KIND} == set(USES)


@pytest.mark.parametrize("verb", ["predict", "explain"])
def test_a_pretrained_model_is_no_tagger_and_it_is_said_what_to_do_with_it(verb, tmp_path, capsys):
    tiny_lattice_bert.pretrained().save(tmp_path / "model")
    assert main([verb, "重庆", "--model", str(tmp_path / "model")]) == 2
    assert "expected a tagger; tune it (`cige finetune TASK --model`)" in capsys.readouterr().err


def test_a_tuned_model_explains_nothing_and_it_is_said_who_reads_with_it(tmp_path, capsys):
    (tmp_path / MANIFEST).write_text(json.dumps({"kind": TUNED}), encoding="utf-8")
    assert main(["explain", "重庆", "--model", str(tmp_path)]) == 2
    assert "`cige predict` reads with it" in capsys.readouterr().err


def test_in_python_too_it_is_said_who_reads_another_kind_of_model(tmp_path):
    tiny_lattice_bert.pretrained().save(tmp_path / "model")
    with pytest.raises(ModelError, match=r"or read it with PretrainedLatticeBert\.from_pretrained"):
        load(tmp_path / "model")
    (tmp_path / MANIFEST).write_text(json.dumps({"kind": TUNED}), encoding="utf-8")
    with pytest.raises(ModelError, match="what was tuned is in its folder encoder/"):
        pretrained.PretrainedLatticeBert.from_pretrained(tmp_path)


@pytest.mark.parametrize("manifest", ['{"kind": ["a", "list"]}', "[" * 100_000, '{"kind": null}'])
def test_a_manifest_that_makes_no_sense_is_told(manifest, tmp_path, capsys):
    (tmp_path / MANIFEST).write_text(manifest, encoding="utf-8")
    assert main(["explain", "重庆", "--model", str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err
