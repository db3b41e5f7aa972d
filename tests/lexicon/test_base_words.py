"""Base words in other processes: mapped ones travel as their folder, others whole."""

import multiprocessing
import pickle
import shutil

import numpy as np
import pytest
from nanjing import TEXT, WORDS

from cige.errors import LexiconError
from cige.lexicon import base_words
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.word_blob import WordBlob


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(base_words, "STORED_FROM", 1)
    Lexicon.from_words(WORDS * 50 + [f"词{i}" for i in range(2000)]).save(tmp_path / "lex")
    return tmp_path / "lex"


def is_mapped(lexicon):
    return isinstance(lexicon._base.matcher.trie.keys.base, np.memmap)


def describe(lexicon):
    return lexicon.match(TEXT).tolist(), is_mapped(lexicon)


def test_a_mapped_lexicon_is_mapped_in_the_other_process_too(folder):
    lexicon = Lexicon.load(folder)
    lexicon.add("江大桥")
    lexicon.remove("市长")
    data = pickle.dumps(lexicon)
    assert len(data) < 1200 < len(pickle.dumps(Lexicon.from_words(WORDS)))
    copy = pickle.loads(data)
    assert describe(copy) == (lexicon.match(TEXT).tolist(), True)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(describe, (lexicon,)) == describe(lexicon)


def test_a_snapshot_travels_the_same_way(folder):
    snapshot = Lexicon.load(folder).snapshot()
    data = pickle.dumps(snapshot)
    assert len(data) < 1000
    assert pickle.loads(data).match(TEXT).tolist() == snapshot.match(TEXT).tolist()


@pytest.mark.parametrize("fate", ["deleted", "replaced"])
def test_a_lexicon_whose_folder_is_gone_travels_whole(folder, fate):
    lexicon = Lexicon.load(folder)
    expected = lexicon.match(TEXT).tolist()
    if fate == "deleted":
        shutil.rmtree(folder)
    else:
        Lexicon.from_words(["别的"]).save(folder)
    copy = pickle.loads(pickle.dumps(lexicon))
    assert describe(copy) == (expected, False) and list(copy) == list(lexicon)


def test_a_folder_replaced_on_the_way_is_a_clear_error(folder):
    data = pickle.dumps(Lexicon.load(folder))
    Lexicon.from_words(["别的"]).save(folder)
    with pytest.raises(LexiconError, match="replaced by another lexicon"):
        pickle.loads(data)


@pytest.mark.parametrize(
    ("counts", "dtype"),
    [
        (None, None),
        ([3, 2**32 - 1], np.uint32),
        ([3, 2**32], np.int64),
        ([3, -1], np.int64),
    ],
)
def test_counts_take_four_bytes_where_four_hold_them(counts, dtype, tmp_path):
    built = base_words.BaseWords.build(WordBlob.from_words(["南京", "长江"]), counts)
    facts = built.save(tmp_path) | {"files": {}}
    assert facts["has_counts"] == (counts is not None) == (tmp_path / base_words.COUNTS_FILE).exists()
    for words in (built, base_words.BaseWords.load(tmp_path, facts)):
        if counts is None:
            assert words.counts is None
        else:
            assert words.counts.tolist() == counts and words.counts.dtype == dtype


def test_a_small_lexicon_keeps_its_trie_in_memory(tmp_path):
    lexicon = Lexicon.from_words(WORDS)
    lexicon.save(tmp_path / "lex")
    assert not list((tmp_path / "lex").glob("trie*"))
    loaded = Lexicon.load(tmp_path / "lex")
    assert describe(loaded) == (lexicon.match(TEXT).tolist(), False)
    assert pickle.loads(pickle.dumps(loaded)).match(TEXT).tolist() == lexicon.match(TEXT).tolist()
