"""Lexicons on disk: saving, loading, damage, and folders of other versions."""

import json
import pickle
import shutil

import numpy as np
import pytest
from disks import full_disk
from nanjing import MATCHES, TEXT, WORDS

from cige.errors import LexiconError
from cige.folders.manifest import write_manifest
from cige.lexicon import base_words
from cige.lexicon import lexicon as lexicon_module
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.storage import check_lexicon


def test_save_and_load(lexicon, tmp_path):
    lexicon.save(tmp_path / "lex")
    loaded = Lexicon.load(tmp_path / "lex")
    assert list(loaded) == WORDS
    assert loaded.match(TEXT).tolist() == MATCHES
    assert loaded.fingerprint == lexicon.fingerprint
    assert loaded.count(5) == 5
    assert isinstance(loaded.words.blob.base, np.memmap), "words must stay on disk"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["lex"], "nothing left aside"


def test_a_lexicon_without_words_or_counts_survives_saving(tmp_path):
    Lexicon.from_words([]).save(tmp_path / "lex")
    loaded = Lexicon.load(tmp_path / "lex")
    assert len(loaded) == 0 and loaded.match(TEXT).shape == (0, 3)
    loaded.add("南京")
    assert loaded.match(TEXT).tolist() == [[0, 2, 0]]


def test_saving_keeps_the_users_changes(lexicon, tmp_path):
    lexicon.add("江大桥", "长江")
    lexicon.remove("市长")
    lexicon.save(tmp_path / "lex")
    loaded = Lexicon.load(tmp_path / "lex")
    assert loaded.user_words == ("江大桥", "长江")
    assert loaded.removed_words == ("市长",)
    assert loaded.match(TEXT).tolist() == lexicon.match(TEXT).tolist()


def test_saving_over_an_older_lexicon_replaces_it_even_under_a_reader(lexicon, tmp_path):
    folder = tmp_path / "lex"
    lexicon.save(folder)
    old = Lexicon.load(folder)
    Lexicon.from_words(["别的"]).save(folder)
    assert list(Lexicon.load(folder)) == ["别的"]
    assert list(old) == WORDS and old.match(TEXT).tolist() == MATCHES


def test_saving_never_replaces_something_else(lexicon, tmp_path):
    folder = tmp_path / "thesis"
    folder.mkdir()
    (folder / "chapter1.txt").write_text("years of work")
    with pytest.raises(LexiconError, match="will not be replaced"):
        lexicon.save(folder)
    with pytest.raises(LexiconError, match="will not be replaced"):
        lexicon.save(folder / "chapter1.txt")
    assert (folder / "chapter1.txt").read_text() == "years of work"


def test_a_failed_save_leaves_the_old_lexicon(lexicon, tmp_path, monkeypatch):
    folder = tmp_path / "lex"
    lexicon.save(folder)

    monkeypatch.setattr(base_words.np, "save", full_disk)
    with pytest.raises(LexiconError, match="No space left"):
        Lexicon.from_words(["别的"], counts=[1]).save(folder)
    monkeypatch.undo()
    assert list(Lexicon.load(folder)) == WORDS
    assert [file.name for file in tmp_path.iterdir()] == ["lex"]


FILES = ["counts.npy", "offsets.npy", "trie_keys.npy", "trie_numbers.npy", "user.json", "words.txt"]


@pytest.fixture
def stored_trie(monkeypatch):
    """Store the trie as lexicons of 200,000 words do; smaller ones build it on loading."""
    monkeypatch.setattr(base_words, "STORED_FROM", 1)


@pytest.mark.parametrize("name", [*FILES, "manifest.json"])
@pytest.mark.parametrize("damage", ["missing", "truncated", "flipped", "foreign"])
@pytest.mark.usefixtures("stored_trie")
def test_a_damaged_folder_is_a_clear_error(lexicon, tmp_path, name, damage):
    folder = tmp_path / "lex"
    lexicon.save(folder)
    assert sorted(file.name for file in folder.iterdir()) == sorted([*FILES, "manifest.json"])
    file = folder / name
    data = file.read_bytes()
    if damage == "missing":
        file.unlink()
    elif damage == "truncated":
        file.write_bytes(data[: len(data) // 2])
    elif damage == "flipped" and name != "manifest.json":
        file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    else:
        other = Lexicon.from_words(["天津", "天津港", "港口", "渤海", "渤海湾大"], counts=[1, 2, 3, 4, 5])
        other.add("某人")
        other.save(tmp_path / "other")
        shutil.copy(tmp_path / "other" / name, file)
    with pytest.raises(LexiconError) as caught:
        Lexicon.load(folder)
    assert str(folder) in str(caught.value)


def test_no_folder_and_another_kind_of_folder(lexicon, tmp_path):
    with pytest.raises(LexiconError, match="nowhere"):
        Lexicon.load(tmp_path / "nowhere")
    lexicon.save(tmp_path / "lex")
    manifest = tmp_path / "lex" / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"kind": "vectors"}))
    with pytest.raises(LexiconError, match="holds 'vectors'"):
        Lexicon.load(tmp_path / "lex")


@pytest.mark.usefixtures("stored_trie")
def test_a_large_lexicon_is_mapped_whole(lexicon, tmp_path):
    lexicon.save(tmp_path / "lex")
    loaded = Lexicon.load(tmp_path / "lex")
    trie = loaded._base.matcher.trie
    assert all(isinstance(array.base, np.memmap) for array in (trie.keys, trie.numbers, loaded.words.offsets))
    assert loaded.match(TEXT).tolist() == MATCHES
    assert "sha256" in vars(loaded.words), "the fingerprint is known without reading the words"
    assert loaded.fingerprint == lexicon.fingerprint


@pytest.mark.usefixtures("stored_trie")
def test_large_files_are_compared_only_when_asked(lexicon, tmp_path, monkeypatch):
    folder = tmp_path / "lex"
    lexicon.save(folder)
    check_lexicon(folder)
    monkeypatch.setattr(lexicon_module, "CHECKED_BYTES", 100)
    data = bytearray((folder / "trie_numbers.npy").read_bytes())
    data[-1] ^= 1
    (folder / "trie_numbers.npy").write_bytes(data)
    assert len(Lexicon.load(folder)) == 6
    with pytest.raises(LexiconError, match=r"trie_numbers\.npy.*sha256"):
        check_lexicon(folder)


def test_a_folder_of_version_1_is_loaded_and_its_automaton_not_needed(lexicon, tmp_path):
    folder = tmp_path / "lex"
    lexicon.add("江大桥")
    lexicon.save(folder)
    (folder / "automaton.zz").write_bytes(b"an automaton of another library")
    facts = json.loads((folder / "manifest.json").read_text())
    for name in ("max_probes", "vectors", "version", "files"):
        del facts[name]
    write_manifest(folder, **facts, version=1, engine="daachorse 0.5.0")
    loaded = Lexicon.load(folder)
    assert list(loaded) == WORDS and loaded.count(5) == 5 and loaded.fingerprint == lexicon.fingerprint
    assert loaded.match(TEXT).tolist() == lexicon.match(TEXT).tolist()
    loaded.save(folder)
    assert not (folder / "automaton.zz").exists()


def test_a_folder_of_a_later_version_asks_for_an_upgrade(lexicon, tmp_path):
    lexicon.save(tmp_path / "lex")
    manifest = tmp_path / "lex" / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"version": 3}))
    with pytest.raises(LexiconError, match="format version 3, this cige reads up to 2; upgrade"):
        Lexicon.load(tmp_path / "lex")


def test_saving_keeps_labels_and_modes_and_folders_without_them_are_as_before(lexicon, tmp_path):
    lexicon.add("南京大桥")
    lexicon.save(tmp_path / "plain")
    assert json.loads((tmp_path / "plain" / "user.json").read_text()) == {"added": ["南京大桥"], "removed": []}
    lexicon.add("江大桥", label="PLACE")
    lexicon.add("桥", label="PLACE", mode="force")
    lexicon.add("长江", mode="block")
    lexicon.save(tmp_path / "lex")
    loaded = Lexicon.load(tmp_path / "lex")
    assert loaded.user_entries == lexicon.user_entries
    assert loaded.match(TEXT).tolist() == lexicon.match(TEXT).tolist()
    assert pickle.loads(pickle.dumps(loaded)).user_entries == lexicon.user_entries


def test_labels_of_a_folder_that_cannot_be_are_an_error(lexicon, tmp_path):
    lexicon.save(tmp_path / "lex")
    file = tmp_path / "lex" / "user.json"
    file.write_text(json.dumps({"added": ["江大桥"], "removed": [], "labels": {"江大桥": "*"}}), encoding="utf-8")
    facts = json.loads((tmp_path / "lex" / "manifest.json").read_text())
    write_manifest(tmp_path / "lex", **{name: value for name, value in facts.items() if name != "files"})
    with pytest.raises(LexiconError, match=r"user.json: '江大桥' \(not a label"):
        Lexicon.load(tmp_path / "lex")
