"""Matching: the C walk, the Python walk, brute force and another library's automaton agree."""

import importlib.util
import pickle
import sys
from dataclasses import replace
from types import SimpleNamespace

import daachorse
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cige.errors import LexiconError
from cige.lexicon import matcher as matching
from cige.lexicon.hash_trie import HashTrie
from cige.lexicon.matcher import Matcher, NativeWalk, PythonWalk, without_cut_runs
from cige.lexicon.word_blob import WordBlob

WALKS = [PythonWalk, NativeWalk] if matching.Walk is NativeWalk else [PythonWalk]
ALPHABET = "ab中文\U00020bb7"  # few characters, so that words nest and overlap
words = st.lists(st.text(ALPHABET, min_size=2, max_size=7), unique=True, max_size=40)
texts = st.text(ALPHABET + "x", max_size=200)
any_char = st.characters(exclude_categories=["Cs"], exclude_characters="\n")
any_words = st.lists(st.text(any_char, min_size=2, max_size=5), unique=True, min_size=1, max_size=8)


def brute_force(words, text):
    number = {word: k for k, word in enumerate(words)}
    spans = [(i, j) for i in range(len(text)) for j in range(i + 2, len(text) + 1) if text[i:j] in number]
    return [[i, j, number[text[i:j]]] for i, j in spans]


def trie_of(words):
    return HashTrie.build(WordBlob.from_words(words))


@pytest.mark.parametrize("way", WALKS)
@given(words=words, text=texts)
def test_every_word_is_found_wherever_it_is(way, words, text):
    rows = way(trie_of(words))(text)
    assert rows.dtype == np.int32 and rows.shape == (len(rows), 3)
    assert rows.tolist() == brute_force(words, text)


@pytest.mark.parametrize("way", WALKS)
@given(words=any_words, data=st.data())
def test_any_characters(way, words, data):
    text = "".join(data.draw(st.lists(st.one_of(st.sampled_from(words), st.text(any_char, max_size=3)), max_size=12)))
    assert way(trie_of(words))(text).tolist() == brute_force(words, text)


@pytest.mark.parametrize("way", WALKS)
@given(text=st.text("aZ@[`{09/:中é１", max_size=90))
def test_words_that_cut_a_run_of_letters_or_digits_are_left_out(way, text):
    cut_and_not = sorted({text[i:j] for i in range(len(text)) for j in range(i + 2, min(len(text), i + 4) + 1)})
    find = way(trie_of(cut_and_not))
    assert find.whole(text).tolist() == without_cut_runs(find(text), text).tolist()


@pytest.mark.parametrize("way", WALKS)
def test_whole_words(way):
    find = way(trie_of(["AI", "12", "AI1"]))
    assert find.whole("BAIDU的AI").tolist() == [[6, 8, 0]]
    assert find.whole("AI12AI1").tolist() == [[0, 2, 0], [2, 4, 1], [4, 6, 0], [4, 7, 2]]


@given(words=words, text=texts)
def test_another_librarys_automaton_finds_the_same(words, text):
    expected = sorted(daachorse.CharwiseDoubleArrayAhoCorasick(words).find_overlapping(text))
    assert Matcher.build(words).find(text).tolist() == [list(match) for match in expected]


@pytest.mark.parametrize("way", WALKS)
@pytest.mark.parametrize("n_chars", [63, 64, 65, 1024, 1025, 5000])
def test_long_texts_where_words_nest_deeply(way, n_chars):
    nested = ["中" * n for n in range(2, 30)]
    rows = way(trie_of(nested))("中" * n_chars)
    expected = [[i, i + n, n - 2] for i in range(n_chars) for n in range(2, 30) if i + n <= n_chars]
    assert rows.tolist() == expected
    rows[:, :2] += 1  # rows are the caller's own


@pytest.mark.parametrize("way", WALKS)
def test_texts_too_short_to_hold_a_word(way):
    find = way(trie_of(["南京"]))
    assert find("").shape == find("南").shape == (0, 3)
    assert way(trie_of([]))("南京").shape == (0, 3)


def test_the_number_of_a_word():
    words = ["南京", "南京市", "京市", "\U00020bb7野家"]
    matcher = Matcher.build(words)
    assert [matcher.number(word) for word in words] == [0, 1, 2, 3]
    assert [matcher.number(word) for word in ("", "南", "京市长", "南京市长", "南京市长江大桥", "\ud800京")] == [
        None
    ] * 6
    rows = matcher.rows(["京市", "没有", "南京"])
    assert rows.dtype == np.int64 and rows.tolist() == [2, -1, 0]


def test_the_number_of_what_is_too_short_or_too_long_needs_no_walk():
    matcher = Matcher.build(["南京", "南京市"])
    walked = []
    usual = matcher.find
    matcher.find = lambda text: walked.append(text) or usual(text)
    assert [matcher.number(word) for word in ("", "南", "南京市长", "南" * 10_000)] == [None] * 4
    assert not walked
    assert matcher.number("南京市") == 1 and walked == ["南京市"]


def test_words_in_a_blob_are_not_copied(monkeypatch):
    blob = WordBlob.from_words(["南京", "京市"])
    built = []
    usual = WordBlob.from_words
    monkeypatch.setattr(WordBlob, "from_words", lambda words: built.append(words) or usual(words))
    assert Matcher.build(blob).find("南京市").tolist() == [[0, 2, 0], [1, 3, 1]]
    assert not built
    assert Matcher.build(["南京", "京市"]).number("京市") == 1 and len(built) == 1


def test_the_walk_is_the_compiled_one_where_it_was_built():
    built = importlib.util.find_spec("cige.lexicon._walk") is not None
    assert matching.Walk is (NativeWalk if built and sys.byteorder == "little" else PythonWalk)


@pytest.mark.parametrize(("byteorder", "name"), [("little", "NativeWalk"), ("big", "PythonWalk")])
def test_the_compiled_walk_is_for_little_endian_machines(byteorder, name, monkeypatch):
    monkeypatch.setattr(sys, "byteorder", byteorder)
    monkeypatch.setitem(sys.modules, "cige.lexicon._walk", SimpleNamespace(match=None, match_whole=None))
    spec = importlib.util.spec_from_file_location("walk_again", matching.__file__)
    again = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(again)
    assert again.Walk is getattr(again, name)


def test_without_a_compiler_the_walk_is_in_python(monkeypatch):
    monkeypatch.setitem(sys.modules, "cige.lexicon._walk", None)  # an import of it fails
    spec = importlib.util.spec_from_file_location("walk_again", matching.__file__)
    again = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(again)
    assert again.Walk is again.PythonWalk


def test_a_matcher_in_another_process_walks_its_own_table():
    matcher = Matcher.build(["南京", "京市"])
    data = pickle.dumps(matcher)
    del matcher
    assert pickle.loads(data).find("南京市").tolist() == [[0, 2, 0], [1, 3, 1]]


@pytest.mark.parametrize("way", WALKS)
def test_a_damaged_table_is_an_error_or_a_miss_and_never_a_crash_or_a_wrong_word(way):
    trie = trie_of(["南京", "南京市", "市长"])
    beyond = replace(trie, numbers=np.full_like(trie.numbers, 3))
    with pytest.raises(LexiconError, match="damaged"):
        way(beyond)("南京市")
    full = replace(trie, keys=np.full_like(trie.keys, 7))  # no empty slot ends the search
    assert way(full)("南京市长").shape == (0, 3)
    noise = np.random.default_rng(0).integers(1, 2**63, len(trie.keys), dtype=np.uint64)
    assert len(way(replace(trie, keys=noise))("南京市长" * 50)) == 0


@pytest.mark.skipif(matching.Walk is not NativeWalk, reason="built without a C compiler")
def test_the_c_code_refuses_what_is_not_a_text_and_a_table():
    from cige.lexicon._walk import match, match_whole

    for arguments in [(b"ab", bytes(40)), ("ab", bytes(39)), ("ab",), ("ab", None), ("ab", bytes(40), 1)]:
        for function in (match, match_whole):
            with pytest.raises(TypeError, match="expected match"):
                function(*arguments)
