"""A model folder that is damaged, or is none, is refused with a word on what to do."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import tiny
import torch
from crafted_folders import sign
from safetensors.torch import load_file, save_file

from cige.errors import ModelError
from cige.folders import manifest as files
from cige.lexicon.lexicon import Lexicon
from cige.models import model as model_module
from cige.models.model import LatticeModel


def change_manifest(folder: Path, **facts) -> None:
    path = folder / files.MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | facts), encoding="utf-8")


def test_no_such_folder(tmp_path):
    with pytest.raises(ModelError, match="no such folder; expected a cige model folder"):
        LatticeModel.load(tmp_path / "nothing")
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="no such folder"):
        LatticeModel.load(tmp_path / "file")


def test_a_folder_of_something_else(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(ModelError, match=r"no manifest.json in it, so this is not a cige model folder"):
        LatticeModel.load(tmp_path)


def test_a_lexicon_folder_is_no_model(tmp_path):
    tiny.model().lexicon.save(tmp_path / "lexicon")
    with pytest.raises(ModelError, match="holds 'lexicon', expected a cige model folder"):
        LatticeModel.load(tmp_path / "lexicon")


@pytest.mark.parametrize("text", ["", "{", "[1]", "null", "\ufeff{}"])
def test_a_spoilt_manifest(folder, text):
    (folder / files.MANIFEST).write_text(text, encoding="utf-8")
    with pytest.raises(ModelError, match=r"manifest.json: cannot be read|expected a cige model folder"):
        LatticeModel.load(folder)


def test_a_newer_format(folder):
    change_manifest(folder, version=model_module.FORMAT_VERSION + 1)
    with pytest.raises(ModelError, match=r"format version 2, this cige reads up to 1; upgrade cige"):
        LatticeModel.load(folder)


FILES = ["model.safetensors", "vocabulary.safetensors"]
FILES += ["lexicon/words.txt", "lexicon/offsets.npy", "lexicon/manifest.json"]


def test_the_files_that_are_spoilt_below_are_there(saved):
    found = {p.relative_to(saved).as_posix() for p in saved.rglob("*") if p.is_file()}
    assert set(FILES) <= found, found


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file(folder, name):
    (folder / name).unlink()
    with pytest.raises(ModelError, match=f"{name}: missing|no manifest.json in it"):
        LatticeModel.load(folder)


@pytest.mark.parametrize("name", FILES)
def test_a_truncated_file(folder, name):
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[: len(data) // 2])
    with pytest.raises(ModelError, match=name):
        LatticeModel.load(folder)


@pytest.mark.parametrize("name", FILES[:-1])
def test_a_flipped_bit(folder, name):
    data = bytearray((folder / name).read_bytes())
    data[-3] ^= 4
    (folder / name).write_bytes(data)
    with pytest.raises(ModelError, match=rf"{name}: contents differ from the manifest"):
        LatticeModel.load(folder)


def test_without_its_lexicon(folder):
    shutil.rmtree(folder / "lexicon")
    with pytest.raises(ModelError, match=r"its lexicon cannot be used: .*no such folder"):
        LatticeModel.load(folder)


@pytest.mark.parametrize("words", [tiny.WORDS[:-1], tiny.WORDS[::-1]], ids=["fewer", "another order"])
def test_a_lexicon_of_another_build(folder, words):
    Lexicon.from_words(words).save(folder / "lexicon")
    with pytest.raises(ModelError, match=r"a lexicon of another build than the model's .*add words of your own with"):
        LatticeModel.load(folder)


def test_weights_of_another_model(folder, tmp_path):
    tiny.model(config=replace(tiny.CONFIG, ff_width=32)).save(tmp_path / "other")
    shutil.copy(tmp_path / "other/model.safetensors", folder)
    with pytest.raises(ModelError, match=r"model.safetensors: \d+ bytes, expected \d+; it is damaged, copy or save it"):
        LatticeModel.load(folder)
    tiny.model(seed=5).save(tmp_path / "same-size")
    shutil.copy(tmp_path / "same-size/model.safetensors", folder)
    with pytest.raises(ModelError, match=r"model.safetensors: contents differ from the manifest .* replaced"):
        LatticeModel.load(folder)


@pytest.mark.parametrize("name", ["model.safetensors", "vocabulary.safetensors"])
def test_files_that_do_not_fit_each_other_though_the_manifest_vouches_for_them(folder, tmp_path, name):
    other = tiny.model(config=replace(tiny.CONFIG, ff_width=32))
    narrow = replace(other.vocabulary, word_rows=other.vocabulary.word_rows[:-1])
    replace(other, vocabulary=narrow).save(tmp_path / "other")
    shutil.copy(tmp_path / "other" / name, folder)
    sign(folder)
    with pytest.raises(ModelError, match=r"do not fit the manifest .* damaged or mixed from two models"):
        LatticeModel.load(folder)


def test_a_weight_too_many_or_too_few(folder):
    weights = load_file(folder / "model.safetensors")
    for changed in (weights | {"extra": torch.zeros(2)}, {k: v for k, v in weights.items() if "fusion" not in k}):
        save_file(changed, folder / "model.safetensors")
        sign(folder)
        with pytest.raises(ModelError, match="do not fit the manifest"):
            LatticeModel.load(folder)


def test_no_safetensors_file(folder):
    (folder / "model.safetensors").write_bytes(b"weights")
    sign(folder)
    with pytest.raises(ModelError, match="do not fit the manifest"):
        LatticeModel.load(folder)


@pytest.mark.parametrize("key", ["config", "tags", "labels", "scheme", "n_rows", "widths", "lexicon_fingerprint"])
@pytest.mark.parametrize("value", ["missing", None, 3])
def test_a_manifest_with_a_hole(folder, key, value):
    path = folder / files.MANIFEST
    facts = json.loads(path.read_text(encoding="utf-8"))
    if value == "missing":
        del facts[key]
    else:
        facts[key] = value
    path.write_text(json.dumps(facts), encoding="utf-8")
    with pytest.raises(ModelError):
        LatticeModel.load(folder)


def test_a_setting_that_this_version_does_not_know(folder):
    facts = json.loads((folder / files.MANIFEST).read_text(encoding="utf-8"))
    change_manifest(folder, config=facts["config"] | {"n_wings": 2})
    with pytest.raises(ModelError, match="n_wings"):
        LatticeModel.load(folder)
