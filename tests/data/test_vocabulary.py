"""Rows of characters, bigrams and words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cige.data.vocabulary import (
    END,
    N_SPECIAL,
    UNK,
    USER,
    CodeTable,
    Vocabulary,
    bigram_codes,
    char_codes,
    code_of,
    seen_first,
    split_bigram,
)
from cige.lattice.lattice import Lattice, build_lattice
from cige.lexicon.lexicon import Lexicon

ANY_CHARACTER = st.characters(exclude_categories=())  # lone surrogates too


def table_of(tokens: list[str]) -> CodeTable:
    return CodeTable.from_ordered(np.array([code_of(token) for token in tokens], np.int64))


def vocabulary(**parts) -> Vocabulary:
    settings = {"chars": table_of([]), "bigrams": table_of([]), "word_rows": np.zeros(0, np.int32)} | parts
    return Vocabulary(**settings, n_tuned=(3, 3, 3), n_rows=(9, 9, 9))


@given(st.lists(st.integers(0, 2**42), unique=True, max_size=30), st.lists(st.integers(0, 2**42), max_size=30))
def test_code_table_gives_rows_in_the_order_of_its_codes(codes, asked):
    table = CodeTable.from_ordered(np.array(codes, np.int64))
    expected = {code: N_SPECIAL + k for k, code in enumerate(codes)}
    queries = [*asked, *codes]
    rows = table.look_up(np.array(queries, np.int64))
    assert rows.dtype == np.int64 and rows.tolist() == [expected.get(code, UNK) for code in queries]
    assert len(table) == len(codes) and table.codes.tolist() == sorted(codes)


def test_look_up_beyond_either_end():
    table = table_of(["乙", "丙"])
    assert table.look_up(np.array([0, ord("乙"), ord("丙"), END], np.int64)).tolist() == [UNK, 3, 4, UNK]
    assert table.look_up(np.zeros(0, np.int64)).tolist() == []
    assert table_of([]).look_up(np.array([1, 2], np.int64)).tolist() == [UNK, UNK]


@given(st.text(ANY_CHARACTER, max_size=20))
def test_one_code_a_character_whatever_it_is(text):
    codes = char_codes(text)
    assert codes.dtype == np.int64 and codes.tolist() == [ord(c) for c in text]
    bigrams = bigram_codes(codes)
    assert len(bigrams) == len(text)
    first, second = split_bigram(bigrams)
    assert first.tolist() == codes.tolist()
    assert second.tolist() == [*codes[1:].tolist(), END][: len(text)]


@given(st.text(ANY_CHARACTER, min_size=2, max_size=20))
def test_bigrams_of_a_text_are_those_of_a_vector_file(text):
    expected = [code_of(text[k : k + 2]) for k in range(len(text) - 1)] + [code_of(f"{text[-1]}</s>")]
    assert bigram_codes(char_codes(text)).tolist() == expected


def test_different_bigrams_have_different_codes():
    characters = ["\0", "a", "中", "\ud800", "\uffff", "𠮷", "\U0010ffff"]
    tokens = [a + b for a in characters for b in characters] + [f"{c}</s>" for c in characters]
    assert len({code_of(token) for token in tokens}) == len(tokens)


def test_what_is_no_character_or_bigram_has_no_code():
    assert [code_of(token) for token in ("", "abc", "</s>", "<s>", "ab</s>")] == [None] * 5
    assert code_of("𠮷") == 0x20BB7 and code_of("\udfff") == 0xDFFF


def test_encoding_a_lattice():
    lexicon = Lexicon.from_words(["南京", "大桥", "无向"])
    lexicon.add("南京", "京大")
    lattice = build_lattice("南京大桥𠮷", lexicon.snapshot())
    encoded = vocabulary(
        chars=table_of(["桥", "南", "𠮷"]),
        bigrams=table_of(["南京", "桥𠮷", "𠮷</s>"]),
        word_rows=np.array([7, 8, UNK], np.int32),
    ).encode(lattice)
    assert encoded.chars.tolist() == [4, UNK, UNK, 3, 5]
    assert encoded.bigrams.tolist() == [3, UNK, UNK, 4, 5]
    assert encoded.words.tolist() == [7, USER, USER, 8]  # 南京 of the base and of the user, 京大, 大桥
    assert encoded.starts.tolist() == [0, 0, 1, 2] and encoded.ends.tolist() == [2, 2, 3, 4]
    assert encoded.text == "南京大桥𠮷" and encoded.n_nodes == 9
    assert all(getattr(encoded, name).dtype == np.int64 for name in ("chars", "bigrams", "words", "starts", "ends"))


def test_counts_and_gazetteers_of_words():
    lexicon = Lexicon.from_words(["南京", "大桥", "无向"])
    lexicon.add("京大")
    lattice = build_lattice("南京大桥", lexicon.snapshot())  # 南京, 京大, 大桥
    rows = {"word_rows": np.array([7, 8, 9], np.int32)}
    plain = vocabulary(**rows).encode(lattice)
    assert plain.counts.tolist() == [0, 0, 0]
    assert plain.groups.tolist() == [1, 0, 1]  # all of the lexicon are in one gazetteer, the user's in none
    known = vocabulary(**rows, word_counts=np.array([5, 6, 0]), word_groups=np.array([1, 3, 2], np.int32)).encode(
        lattice
    )
    assert known.counts.tolist() == [5, 0, 6] and known.groups.tolist() == [1, 0, 3]


@pytest.mark.parametrize(
    ("counts", "expected"), [(None, 1), ([0, 0], 1), ([0, 4, 7], 6), ([1, 1, 2], 1), ([0, 0, 9], 9)]
)
def test_a_users_word_counts_as_the_mean_of_the_words_that_occur(counts, expected):
    counts = None if counts is None else np.array(counts)
    assert vocabulary(word_counts=counts).user_count == expected


@pytest.mark.parametrize("text", ["", "\ud83d\udc00", "\0", "\ud800"])
def test_encoding_strange_texts(text):
    lattice = build_lattice(text, Lexicon.from_words(["南京"]).snapshot())
    encoded = vocabulary().encode(lattice)
    assert encoded.chars.tolist() == encoded.bigrams.tolist() == [UNK] * len(text) and encoded.n_nodes == len(text)


def test_every_users_word_has_the_users_row_however_many_there_are():
    lexicon = Lexicon.from_words(["南京"])
    lexicon.add(*(f"词{k}号" for k in range(50)))
    lattice = build_lattice("词0号词49号南京", lexicon.snapshot())
    assert lattice.words[:, 2].tolist() == [1, 50, 0]
    assert vocabulary(word_rows=np.array([5], np.int32)).encode(lattice).words.tolist() == [USER, USER, 5]


def test_what_training_text_holds():
    lexicon = Lexicon.from_words(["南京", "大桥", "京大"])
    lexicon.add("桥南京")
    lattices = [build_lattice(text, lexicon.snapshot()) for text in ("大桥南京", "大桥", "")]
    chars, bigrams, words = seen_first(lattices, len(lexicon))
    assert chars.tolist() == sorted(map(ord, "大桥南京"))
    assert bigrams.tolist() == sorted(code_of(t) for t in ("大桥", "桥南", "南京", "京</s>", "桥</s>"))
    assert words.tolist() == [0, 1]  # neither the user's nor what does not occur
    assert [len(x) for x in seen_first([], 3)] == [0, 0, 0]


def test_labels_of_words():
    lexicon = Lexicon.from_words(["南京"])
    lexicon.add("南京", label="LOC")
    lexicon.add("大桥", label="ROAD")
    lexicon.add("京大")
    lattice = build_lattice("南京大桥", lexicon.snapshot())
    assert lattice.labelled_words == [(1, "LOC"), (3, "ROAD")]  # 南京 of the base, 南京 of the user, 京大, 大桥
    known = vocabulary(word_labels=("PER", "LOC"))
    assert known.encode(lattice).word_labels.tolist() == [0, 2, 0, 3]
    assert vocabulary(word_labels=("ROAD", "PER", "LOC")).encode(lattice).word_labels.tolist() == [0, 3, 0, 1]
    assert known.encode(replace(lattice, words=lattice.words[1:2])).word_labels.tolist() == [2]
    plain = build_lattice("南京大桥", Lexicon.from_words(["南京"]).snapshot())
    assert plain.labelled_words == [] and known.encode(plain).word_labels.tolist() == [0]
    assert known.encode(plain).word_labels.dtype == np.int64


@pytest.mark.parametrize("user_labels", [(), ("GAME", None, "ODD")])
@pytest.mark.parametrize("ids", [[0, 1, 2, 3], [0, 4, 3, 5, 6], [4, 5, 6], []])
def test_a_word_has_the_number_of_its_label_or_of_its_set_of_gazetteers(ids, user_labels):
    groups = np.array([0b1, 0b11, 0b101, 0b11], np.int32)
    known = vocabulary(
        word_rows=np.zeros(4, np.int32), word_groups=groups, n_groups=3, gazetteers=("a", "b"), word_labels=("GAME",)
    )
    words = np.array([(k, k + 2, number) for k, number in enumerate(ids)], np.int32).reshape(-1, 3)
    lattice = Lattice("中" * 9, words, n_base=4, user_labels=user_labels)
    of_user = {4: 1, 5: 0, 6: 2} if user_labels else {4: 0, 5: 0, 6: 0}  # labels are 1, and 2 for unknown ones
    of_base = {0: 0, 1: 3, 2: 4, 3: 3}  # sets follow them
    found = known.label_and_set_ids(lattice, lattice)
    assert found.tolist() == 2 * [(of_base | of_user)[number] for number in ids]
    assert found.dtype == np.int32
