"""The list of names of a model: what it reads, and another list in its place."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny import CONFIG, GAZETTEERS, model

import cige
from cige.data.names_of_model import names_of, with_names
from cige.errors import LexiconError
from cige.lexicon.names_list import NamesList
from cige.models.model import LatticeModel

TEXT = "请张三北京罗氏公司说话"
F32 = {"native": {"precision": "float32"}, "torch": {}}


@pytest.fixture(scope="module")
def reading() -> LatticeModel:
    return model(config=replace(CONFIG, gazetteers=True))


@pytest.fixture(scope="module")
def folder(reading: LatticeModel, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model"
    reading.save(path)
    return path


def test_the_own_list_is_read_and_changes_nothing_when_given_again(reading):
    own = names_of(reading.vocabulary, reading.lexicon)
    assert own.kinds["北京"] == ("LOC/good", "ORG") and own.kinds["张三"] == ("PER",)
    assert own.counts() == {kind: len(words) for kind, words in GAZETTEERS.items()}
    vocabulary, lexicon = with_names(reading.vocabulary, reading.lexicon, own)
    assert names_of(vocabulary, lexicon).kinds == own.kinds
    assert set(lexicon) == set(reading.lexicon)
    rows = {word: int(reading.vocabulary.word_rows[reading.lexicon.id(word)]) for word in reading.lexicon}
    assert {word: int(vocabulary.word_rows[lexicon.id(word)]) for word in lexicon} == rows


def test_another_list_replaces_the_words_that_only_the_old_one_had(reading):
    reading.lexicon.add("自家词", label="PER")
    try:
        vocabulary, lexicon = with_names(reading.vocabulary, reading.lexicon, NamesList({"新名字": ("PER",)}))
    finally:
        reading.lexicon.remove("自家词")
    assert "张三" not in lexicon and "新名字" in lexicon and "中国" in lexicon and "自家词" in lexicon
    assert names_of(vocabulary, lexicon).kinds == {"新名字": ("PER",)}
    assert [word.label for word in lexicon.user_entries] == ["PER"]
    groups = vocabulary.word_groups
    assert groups[lexicon.id("新名字")] == 1 << 3 and groups[lexicon.id("中国")] == 1


def test_kinds_that_the_model_does_not_know_are_read_as_the_first_of_their_type(reading):
    vocabulary, lexicon = with_names(reading.vocabulary, reading.lexicon, NamesList({"火星": ("LOC/space",)}))
    assert names_of(vocabulary, lexicon).kinds == {"火星": ("LOC/good",)}
    with pytest.raises(LexiconError, match=r"'GAME'; the model knows LOC/good, ORG, PER"):
        with_names(reading.vocabulary, reading.lexicon, NamesList({"原神": ("GAME",)}))


def test_a_model_without_a_list_says_so():
    plain = model(config=CONFIG)
    with pytest.raises(LexiconError, match="trained without a list of names"):
        names_of(plain.vocabulary, plain.lexicon)


def test_load_takes_a_list_in_every_backend_and_keeps_it_when_pickled_and_saved(folder, tmp_path):
    NamesList({"说话": ("PER",), "北京": ("ORG",)}).write(tmp_path / "names.tsv")
    own = cige.load(folder, precision="float32")
    native, torch = (cige.load(folder, names=tmp_path / "names.tsv", backend=b, **F32[b]) for b in ("native", "torch"))
    emissions = [ner.model.emissions([windows(ner, TEXT)]) for ner in (own, native, torch)]
    assert np.allclose(emissions[1], emissions[2], atol=1e-4)
    assert not np.allclose(emissions[0], emissions[1], atol=1e-3)
    copy = pickle.loads(pickle.dumps(native))
    assert np.allclose(copy.model.emissions([windows(copy, TEXT)]), emissions[1])
    native.model.save(tmp_path / "saved")
    saved = cige.load(tmp_path / "saved", precision="float32")
    assert np.allclose(saved.model.emissions([windows(saved, TEXT)]), emissions[1])
    assert names_of(saved.model.vocabulary, saved.lexicon).kinds == {"说话": ("PER",), "北京": ("ORG",)}


def windows(ner, text: str):
    from cige.lattice.lattice import build_lattice

    return build_lattice(text, ner.lexicon.snapshot())


def test_what_cannot_be_used_is_told(folder, tmp_path):
    (tmp_path / "mixed.tsv").write_text("说话\tPER\n王\tPER\n", encoding="utf-8")
    with pytest.warns(UserWarning, match="1 taken, 1 refused"):
        cige.load(folder, names=tmp_path / "mixed.tsv")
    (tmp_path / "gbk.tsv").write_bytes("说话\tPER\n".encode("gbk"))
    with pytest.raises(LexiconError, match="not UTF-8"):
        cige.load(folder, names=tmp_path / "gbk.tsv")
    with pytest.raises(TypeError, match="expected a NamesList or the path"):
        cige.load(folder, names=True)
    with pytest.raises(TypeError, match="unexpected keyword argument 'types'"):
        cige.load(folder, types="coarse")


@pytest.mark.parametrize("name", ["王", "", "ＡＢＣ公司", "长" * 100])
def test_a_name_that_cannot_be_one_is_refused_and_moves_no_other(reading, name):
    names = NamesList({"ABC公司": ("PER",), name: ("PER",), "说话": ("ORG",)})
    with pytest.raises(LexiconError, match="cannot be a name"):
        with_names(reading.vocabulary, reading.lexicon, names)
