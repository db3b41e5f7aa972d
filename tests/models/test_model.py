"""A model folder: what is saved is loaded, and what fails while saving leaves the old folder."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
import tiny
import torch
from disks import full_disk
from safetensors.torch import load_file
from tiny import emissions

from cige.errors import ModelError
from cige.models.flat import RELEASED, FlatConfig
from cige.models.model import LatticeModel

TEXTS = ["李明在北京。王小红是罗氏公司的经理，他来自南京市。", "", "长江大桥😀"]
UNSEEN = "长江大桥在人和药店，龘"  # words and characters with vectors that training never read, and without


def decoded(model: LatticeModel, texts: list[str]) -> list[list[str]]:
    batch, _ = model.encode(texts)
    return [[model.tagger.tags[k] for k in path] for path in model.tagger.decode(batch)]


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


# interrupted saving


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
