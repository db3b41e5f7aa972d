"""A model folder: what is saved is loaded, and what is damaged is refused with a word on what to do."""

from __future__ import annotations

import errno
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tiny
import torch
from safetensors.torch import load_file, save_file

from cige.errors import ModelError
from cige.folders import manifest as files
from cige.lexicon.lexicon import Lexicon
from cige.models import model as model_module
from cige.models.flat import RELEASED, FlatConfig
from cige.models.model import LatticeModel

TEXTS = ["李明在北京。王小红是罗氏公司的经理，他来自南京市。", "", "长江大桥😀"]
UNSEEN = "长江大桥在人和药店，龘"  # words and characters with vectors that training never read, and without


def emissions(model: LatticeModel, texts: list[str]) -> torch.Tensor:
    batch, _ = model.encode(texts)
    with torch.no_grad():
        return model.tagger(batch).emissions[batch.char_mask]


def decoded(model: LatticeModel, texts: list[str]) -> list[list[str]]:
    batch, _ = model.encode(texts)
    return [[model.tagger.tags[k] for k in path] for path in model.tagger.decode(batch)]


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "model"
    tiny.model().save(folder)
    return folder


@pytest.fixture
def folder(saved, tmp_path) -> Path:
    """A copy to spoil."""
    shutil.copytree(saved, tmp_path / "model")
    return tmp_path / "model"


def change_manifest(folder: Path, **facts) -> None:
    path = folder / files.MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | facts), encoding="utf-8")


def vouch_for(folder: Path) -> None:
    """Write the manifest's list of files anew, as if nothing had been changed."""
    facts = json.loads((folder / files.MANIFEST).read_text(encoding="utf-8"))
    facts.pop("files")
    files.write_manifest(folder, **facts)


# saving and loading


@pytest.mark.parametrize(("table_dtype", "tolerance"), [(None, 0.0), ("float16", 0.01), ("int8", 0.1)])
def test_saved_and_loaded(tmp_path, table_dtype, tolerance):
    model = tiny.trained_model()
    model.lexicon.add("轩辕")
    model.save(tmp_path / "model", table_dtype=table_dtype)
    again = LatticeModel.load(tmp_path / "model")
    texts = [*TEXTS, UNSEEN, "请轩辕说话"]
    torch.testing.assert_close(emissions(again, texts), emissions(model, texts), atol=tolerance, rtol=tolerance)
    assert decoded(again, texts) == decoded(model, texts)
    assert not again.tagger.training
    assert again.lexicon.user_words == ("轩辕",) and again.lexicon.fingerprint == model.lexicon.fingerprint
    for name in ("config", "labels", "scheme", "facts"):
        assert getattr(again, name) == getattr(model, name)
    assert again.tagger.tags == model.tagger.tags and again.vocabulary.n_rows == model.vocabulary.n_rows


@pytest.mark.parametrize("dtypes", [("int8", "float16"), ("float16", "int8"), ("int8", None), ("int8", "int8")])
def test_a_small_model_may_be_saved_again(tmp_path, dtypes):
    model = tiny.model()
    for dtype in dtypes:
        model.save(tmp_path / "model", table_dtype=dtype)
        model = LatticeModel.load(tmp_path / "model")
    torch.testing.assert_close(emissions(model, TEXTS), emissions(tiny.model(), TEXTS), atol=0.05, rtol=0)


def test_a_small_model_is_smaller_and_trains_special_rows_only(tmp_path):
    sizes = {}
    for dtype in (None, "float16", "int8"):
        tiny.model().save(tmp_path / str(dtype), table_dtype=dtype)
        tables = {k: v for k, v in load_file(tmp_path / str(dtype) / "model.safetensors").items() if "embeddings" in k}
        sizes[dtype] = sum(v.nbytes for v in tables.values())
    assert sizes["int8"] < sizes["float16"] < sizes[None]
    small = LatticeModel.load(tmp_path / "int8")
    assert small.vocabulary.n_tuned == (3, 3, 3)
    assert small.tagger.encoder.embeddings.char.fixed.dtype == torch.int8


def test_a_loaded_model_can_be_trained_on(tmp_path):
    model = tiny.model()
    model.save(tmp_path / "model")
    again = LatticeModel.load(tmp_path / "model")
    trainable = {k for k, p in model.tagger.named_parameters() if p.requires_grad}
    assert {k for k, p in again.tagger.named_parameters() if p.requires_grad} == trainable
    assert {p.device.type for p in again.tagger.parameters()} == {"cpu"}


@pytest.mark.parametrize(
    "config",
    [
        replace(tiny.CONFIG, **RELEASED, position_offset=50),
        replace(tiny.CONFIG, distances=("hh",), max_distance=10, mask_self_matched=True, n_layers=2),
        replace(tiny.CONFIG, use_words=False, constrained=False),
        replace(tiny.CONFIG, bigram_backoff=True),
    ],
    ids=["released", "masks", "no words", "backoff"],
)
def test_every_form_of_the_network_comes_back(tmp_path, config: FlatConfig):
    model = tiny.model(config=config)
    model.save(tmp_path / "model")
    again = LatticeModel.load(tmp_path / "model")
    assert again.config == config
    torch.testing.assert_close(emissions(again, TEXTS), emissions(model, TEXTS), atol=1e-6, rtol=0)


@pytest.mark.parametrize("scheme", ["BMES", "BIOES", "BIO"])
def test_scheme_and_facts_come_back(tmp_path, scheme):
    model = replace(tiny.model(scheme=scheme), facts={"seed": 1, "recipe": {"name": "微博"}})
    model.save(tmp_path / "model")
    again = LatticeModel.load(tmp_path / "model")
    assert again.scheme == scheme and again.facts == {"seed": 1, "recipe": {"name": "微博"}}
    assert decoded(again, TEXTS) == decoded(model, TEXTS)


def test_user_words_and_removed_words_come_back(tmp_path):
    model = tiny.model()
    model.lexicon.add("轩辕", "北京")
    model.lexicon.remove("天气")
    model.save(tmp_path / "model")
    again = LatticeModel.load(tmp_path / "model")
    assert again.lexicon.user_words == ("轩辕", "北京") and again.lexicon.removed_words == ("天气",)
    assert torch.equal(emissions(again, ["北京天气"]), emissions(model, ["北京天气"]))


def test_encode_reads_all_texts_with_one_snapshot():
    model = tiny.model()
    before = model.lexicon.snapshot()
    model.lexicon.add("轩辕")
    assert model.encode(["轩辕", "轩辕"], before)[0].n_words.tolist() == [0, 0]
    assert model.encode(["轩辕", "轩辕"])[0].n_words.tolist() == [1, 1]


def test_an_unknown_table_dtype_writes_nothing(tmp_path):
    with pytest.raises(ValueError, match=r"table dtype 'int4'; expected \"float16\" or \"int8\""):
        tiny.model().save(tmp_path / "model", table_dtype="int4")
    assert list(tmp_path.iterdir()) == []


# damage


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
    vouch_for(folder)
    with pytest.raises(ModelError, match=r"do not fit the manifest .* damaged or mixed from two models"):
        LatticeModel.load(folder)


def test_a_weight_too_many_or_too_few(folder):
    weights = load_file(folder / "model.safetensors")
    for changed in (weights | {"extra": torch.zeros(2)}, {k: v for k, v in weights.items() if "fusion" not in k}):
        save_file(changed, folder / "model.safetensors")
        vouch_for(folder)
        with pytest.raises(ModelError, match="do not fit the manifest"):
            LatticeModel.load(folder)


def test_no_safetensors_file(folder):
    (folder / "model.safetensors").write_bytes(b"weights")
    vouch_for(folder)
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


# interrupted saving


def full_disk(*args, **kwargs):
    raise OSError(errno.ENOSPC, "No space left on device")


WRITERS = ["cige.models.model.save_file", "cige.data.model_words.save_file", "cige.models.model.write_manifest"]


@pytest.mark.parametrize("target", [*WRITERS, "os.fsync", "os.replace"])
def test_a_full_disk_keeps_the_old_folder(saved, folder, monkeypatch, target):
    before = {p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    with monkeypatch.context() as patch:
        patch.setattr(target, full_disk)
        with pytest.raises(ModelError, match=r"model: not saved \(.*No space left on device.*what was there before is"):
            tiny.model(seed=3).save(folder)
    assert {p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before
    assert [p.name for p in folder.parent.iterdir()] == ["model"]  # nothing half written is left
    assert torch.equal(emissions(LatticeModel.load(folder), TEXTS), emissions(LatticeModel.load(saved), TEXTS))


def test_stopped_between_the_two_renames_the_old_folder_comes_back(folder, monkeypatch):
    replace_file, calls = os.replace, []

    def second_fails(source, target):
        calls.append(source)
        if len(calls) == n_last:
            raise KeyboardInterrupt
        replace_file(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", second_fails)
        n_last = 3  # the lexicon's folder, the old model away, and now the new one in its place
        with pytest.raises(KeyboardInterrupt):
            tiny.model(seed=3).save(folder)
    assert len(calls) == 4  # the last one put the old folder back
    assert [p.name for p in folder.parent.iterdir()] == ["model"]
    assert torch.equal(emissions(LatticeModel.load(folder), TEXTS), emissions(tiny.model(), TEXTS))


def test_saving_again_replaces_the_whole_folder(folder):
    (folder / "lexicon/stray").write_text("x")
    tiny.model(seed=3).save(folder)
    assert not (folder / "lexicon/stray").exists()
    assert torch.equal(emissions(LatticeModel.load(folder), TEXTS), emissions(tiny.model(seed=3), TEXTS))


def test_a_damaged_model_may_be_replaced(folder):
    (folder / "model.safetensors").unlink()
    tiny.model().save(folder)
    LatticeModel.load(folder)


def test_somebody_elses_folder_is_not_replaced(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis/chapter.tex").write_text("...")
    with pytest.raises(ModelError, match="not a cige model folder; it will not be replaced, give a new folder"):
        tiny.model().save(tmp_path / "thesis")
    assert (tmp_path / "thesis/chapter.tex").read_text() == "..."
    with pytest.raises(ModelError, match="will not be replaced"):
        tiny.model().save(tmp_path / "thesis/chapter.tex")
    (tmp_path / "empty").mkdir()
    tiny.model().save(tmp_path / "empty")
    assert len(LatticeModel.load(tmp_path / "empty").tagger.tags) == 13


def test_vocabulary_comes_back_bit_by_bit(folder):
    model, again = tiny.model(), LatticeModel.load(folder)
    for name in ("chars", "bigrams"):
        for part in ("codes", "rows"):
            a, b = (getattr(getattr(m.vocabulary, name), part) for m in (model, again))
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(model.vocabulary.word_rows, again.vocabulary.word_rows)
