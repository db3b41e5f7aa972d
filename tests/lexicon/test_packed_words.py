"""PackedWords: C, Python and brute force agree, on finding words as on the tables themselves."""

import importlib
import pickle
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cige.errors import LexiconError
from cige.lexicon import packed_words
from cige.lexicon.packed_words import NativePacked, PackedWords, PythonPacked
from cige.lexicon.word_blob import WordBlob

WAYS = [PythonPacked, NativePacked] if packed_words.Packed is NativePacked else [PythonPacked]
ALPHABET = "ab中文é\U00020bb7"
words = st.lists(st.text(ALPHABET, min_size=1, max_size=7), max_size=40)
texts = st.text(ALPHABET + "x", max_size=120)


def packed(words, way=None):
    return PackedWords.build(WordBlob.from_words(words), way)


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=200)
@given(words=words, text=texts)
def test_every_word_is_found_wherever_it_is(way, words, text):
    distinct = list(dict.fromkeys(words))
    number = {word: k for k, word in enumerate(distinct)}
    found, first = packed(words, way)
    spans = [(i, j) for i in range(len(text)) for j in range(i + 1, len(text) + 1) if text[i:j] in number]
    rows = found.find(text)
    assert rows.dtype == np.int32 and rows.shape == (len(rows), 3)
    assert rows.tolist() == [[i, j, number[text[i:j]]] for i, j in spans]
    assert list(found) == distinct and len(found) == len(distinct)
    if len(distinct) == len(words):
        assert first is None
    else:
        assert first.tolist() == [words.index(word) for word in words]


@given(words=words, others=words)
def test_the_number_of_words(words, others):
    distinct = list(dict.fromkeys(words))
    for way in WAYS:
        found, _ = packed(words, way)
        expected = [distinct.index(word) if word in distinct else -1 for word in others]
        assert found.numbers(WordBlob.from_words(others)).tolist() == expected
        assert [found.number(word) for word in others] == [None if k < 0 else k for k in expected]
        assert found.number("") is None and found.number("ab\n") is None and found.number("\ud83d") is None


@pytest.mark.skipif(len(WAYS) == 1, reason="nothing was compiled")
@given(words=words)
def test_the_tables_of_c_and_python_are_the_same(words):
    (one, first), (other, theirs) = (packed(words, way) for way in WAYS)
    for name in ("slots", "tags", "filter"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()
    assert (one.max_chars, one.has_single) == (other.max_chars, other.has_single)
    assert (first is None) == (theirs is None) and (first is None or first.tolist() == theirs.tolist())


@pytest.mark.parametrize("way", WAYS)
def test_a_long_text_with_more_rows_than_are_kept_on_the_stack(way):
    found, _ = packed(["啊", "啊啊", "啊啊啊"], way)
    rows = found.find("啊" * 1500).tolist()
    assert len(rows) == 1500 + 1499 + 1498 and rows == sorted(rows)


@pytest.mark.parametrize("way", WAYS)
def test_without_words_nothing_is_found(way):
    found, first = packed([], way)
    assert first is None and len(found) == 0
    assert found.find("甲乙").shape == (0, 3) and found.number("甲乙") is None
    assert found.numbers(WordBlob.from_words(["甲乙"])).tolist() == [-1]


def test_a_word_of_one_character_is_found_where_nothing_begins_with_it():
    found, _ = packed(["甲", "乙丙"])
    assert found.has_single
    assert found.find("甲乙丙甲").tolist() == [[0, 1, 0], [1, 3, 1], [3, 4, 0]]


def test_little_memory_for_each_word():
    words = [f"{chr(0x4E00 + k % 3000)}{chr(0x5000 + k // 3000)}某" for k in range(30_000)]
    found, _ = packed(words)
    arrays = (found.words.offsets, found.slots, found.tags, found.filter)
    assert sum(array.nbytes for array in arrays) < 16 * len(words)


def test_in_another_process_it_finds_the_same():
    found, _ = packed(["甲乙", "乙丙丁", "丙"])
    copy = pickle.loads(pickle.dumps(found))
    assert copy.find("甲乙丙丁").tolist() == found.find("甲乙丙丁").tolist() and list(copy) == list(found)


def test_more_text_than_offsets_can_hold_is_refused():
    blob = WordBlob(blob=np.zeros(0, np.uint8), offsets=np.array([0, 1 << 32], np.uint64))
    with pytest.raises(LexiconError, match="expected less"):
        PackedWords.build(blob)


def test_without_a_compiler_it_is_in_python(monkeypatch):
    monkeypatch.setitem(sys.modules, "cige.lexicon._packed", None)  # an import of it fails
    monkeypatch.delitem(sys.modules, "cige.lexicon.packed_words")
    monkeypatch.delattr(sys.modules["cige.lexicon"], "_packed", raising=False)
    assert importlib.import_module("cige.lexicon.packed_words").Packed.__name__ == "PythonPacked"
    sys.modules["cige.lexicon"].packed_words = packed_words  # type: ignore[attr-defined]  # as it was


@pytest.mark.skipif(len(WAYS) == 1, reason="nothing was compiled")
def test_the_compiled_functions_refuse_other_arguments():
    from cige.lexicon import _packed

    for arguments in (("甲",), ("甲", b"short"), ("甲", "text"), (b"a", b"b")):
        with pytest.raises(TypeError):
            _packed.find(*arguments)
    for function in (_packed.measure, _packed.fill, _packed.numbers):
        with pytest.raises(TypeError):
            function(b"short")


def test_blobs_are_joined_and_thinned():
    one, other = WordBlob.from_words(["甲乙", "c"]), WordBlob.from_words(["é"])
    assert list(one + other) == ["甲乙", "c", "é"] and (one + other).offsets.tolist() == [0, 7, 9, 12]
    assert list((one + other).only(np.array([True, False, True]))) == ["甲乙", "é"]
    assert list(one.only(np.zeros(2, bool))) == [] and list(WordBlob.from_words([]) + one) == ["甲乙", "c"]


def test_words_of_older_pickles_are_found_with_other_marks():
    given = ["医药（集团）", "甲乙", "甲（乙）", "甲(乙)", "CO₂排放"]
    copy = packed_words._unpickled("".join(f"{word}\n" for word in given).encode())  # which these pickles name
    assert list(copy) == ["医药(集团)", "甲乙", "甲（乙）", "甲(乙)", "CO2排放"], "each keeps its number"
    assert copy.number("医药(集团)") == 0 and copy.number("甲(乙)") == 3 and copy.number("CO2排放") == 4
    words = packed(["医药(集团)", "甲乙"])[0]
    assert b"_unpickled" not in pickle.dumps(words) and list(pickle.loads(pickle.dumps(words))) == list(words)
