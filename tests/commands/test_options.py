"""What several verbs share: the model that --model names."""

from __future__ import annotations

import json
from importlib import import_module

import pytest
import tiny_lattice_bert

from cige import load
from cige.cli import main
from cige.errors import ModelError
from cige.folders.kinds import KINDS, TUNED
from cige.folders.manifest import MANIFEST
from cige.models.lattice_bert import pretrained


@pytest.mark.parametrize("verb", ["predict", "explain"])
def test_a_pretrained_model_is_no_tagger_and_it_is_said_what_to_do_with_it(verb, tmp_path, capsys):
    tiny_lattice_bert.pretrained().save(tmp_path / "model")
    assert main([verb, "重庆", "--model", str(tmp_path / "model")]) == 2
    assert "expected a cige model folder; fine-tune it (`cige finetune TASK --model`)" in capsys.readouterr().err


def test_every_loader_in_the_table_of_kinds_is_there():
    for kind in KINDS.values():
        if kind.finder is not None:
            module, _, name = kind.finder.partition(":")
            assert callable(getattr(import_module(module), name))


def test_in_python_too_it_is_said_who_reads_another_kind_of_model(tmp_path):
    tiny_lattice_bert.pretrained().save(tmp_path / "model")
    with pytest.raises(ModelError, match=r"or read it with PretrainedLatticeBert\.from_pretrained"):
        load(tmp_path / "model")
    (tmp_path / MANIFEST).write_text(json.dumps({"kind": TUNED}), encoding="utf-8")
    with pytest.raises(ModelError, match="the fine-tuned encoder is in its folder encoder/"):
        pretrained.PretrainedLatticeBert.from_pretrained(tmp_path)


@pytest.mark.parametrize("manifest", ['{"kind": ["a", "list"]}', "[" * 100_000, '{"kind": null}'])
def test_a_manifest_that_makes_no_sense_is_told(manifest, tmp_path, capsys):
    (tmp_path / MANIFEST).write_text(manifest, encoding="utf-8")
    assert main(["explain", "重庆", "--model", str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err
