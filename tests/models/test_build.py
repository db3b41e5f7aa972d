"""From vectors and training text to the rows of a model's tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import tiny
import torch

from cige.data.vocabulary import N_SPECIAL, PAD, UNK, USER
from cige.lattice.lattice import build_lattice
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.vectors import VectorLength, VectorTable
from cige.models.build import InputTables, Vectors, build_tagger, input_tables

TRAINING = ["南京大桥", "大桥"]
WORDS = ["长江", "大桥", "南京", "无向"]  # 无向 has no vector
CHARS = ["江", "南", "京", "长", "桥", "𠮷"]  # 大 has none
BIGRAMS = ["长江", "南京", "大桥", "桥</s>", "𠮷江", "xyz"]


def table_of(words: list[str], width: int, *, seed: int) -> VectorTable:
    """Vectors of lengths 1.5, 2, 2.5, ..: none is a unit vector already."""
    lengths = 1.5 + 0.5 * np.arange(len(words), dtype=np.float32)
    return VectorTable(words, tiny.random_table(words, width, seed=seed).vectors * lengths[:, None])


def vectors(length: VectorLength = "own") -> Vectors:
    return Vectors(
        length=length,
        char=table_of(CHARS, 4, seed=1),
        bigram=table_of(BIGRAMS, 5, seed=2),
        word=table_of(["别的", "南京", "长江", "大桥"], 6, seed=3),
    )


def made(length: VectorLength = "own", **options) -> tuple[InputTables, Lexicon]:
    lexicon = Lexicon.from_words(WORDS)
    lattices = [build_lattice(text, lexicon.snapshot()) for text in TRAINING]
    return input_tables(lattices, lexicon, vectors(length), seed=0, **options), lexicon


def vector(table: VectorTable, token: str, length: VectorLength) -> np.ndarray:
    found = np.asarray(table.vectors[table.row(token)], np.float32)
    return found / np.linalg.norm(found) if length == "unit" else found


def row_of(tables: InputTables, lexicon: Lexicon, text: str) -> dict[str, list[int]]:
    encoded = tables.vocabulary.encode(build_lattice(text, lexicon.snapshot()))
    return {"chars": encoded.chars.tolist(), "bigrams": encoded.bigrams.tolist(), "words": encoded.words.tolist()}


def test_what_training_saw_comes_first_and_alone_is_tuned():
    tables, lexicon = made()
    vocabulary = tables.vocabulary
    rows = row_of(tables, lexicon, TRAINING[0])
    assert vocabulary.n_tuned == (N_SPECIAL + 3, N_SPECIAL + 3, N_SPECIAL + 2)
    assert vocabulary.n_rows == tuple(len(m) for m in tables.matrices) == (N_SPECIAL + 6, N_SPECIAL + 5, N_SPECIAL + 3)
    seen_chars = {c: row for c, row in zip(TRAINING[0], rows["chars"], strict=True) if c != "大"}
    assert set(seen_chars.values()) == {3, 4, 5}
    assert sorted(rows["words"]) == [3, 4]
    unseen = row_of(tables, lexicon, "长江")
    assert min(unseen["chars"][0], unseen["bigrams"][0], unseen["words"][0]) >= 5


@pytest.mark.parametrize("length", ["own", "unit"])
def test_every_row_holds_its_own_vector(length):
    tables, lexicon = made(length)
    char, bigram, word = tables.matrices
    known = vectors()
    rows = row_of(tables, lexicon, "长江南京大桥")
    for c, row in zip("长江南京", rows["chars"], strict=False):
        np.testing.assert_allclose(char[row], vector(known.char, c, length), atol=1e-6)
    for place, token in ((0, "长江"), (2, "南京"), (4, "大桥"), (5, "桥</s>")):
        np.testing.assert_allclose(bigram[rows["bigrams"][place]], vector(known.bigram, token, length), atol=1e-6)
    for row, token in zip(rows["words"], ("长江", "南京", "大桥"), strict=True):
        np.testing.assert_allclose(word[row], vector(known.word, token, length), atol=1e-6)
    for matrix in tables.matrices:
        assert matrix.dtype == np.float32 and not matrix[PAD].any()
        lengths = np.linalg.norm(matrix, axis=1)
        expected = 1 if length == "unit" else lengths[N_SPECIAL:].mean()
        np.testing.assert_allclose(lengths[1:N_SPECIAL], expected, rtol=1e-5)


@pytest.mark.parametrize("length", ["own", "unit"])
def test_vectors_are_scaled_only_where_asked_for(length):
    given = np.array([[3.0, 4.0], [0.0, 0.0]], np.float16)
    expected = [[0.6, 0.8], [0, 0]] if length == "unit" else [[3, 4], [0, 0]]
    np.testing.assert_allclose(vectors(length).scaled(given), expected, atol=1e-6)


def test_special_rows_have_length_one_where_there_is_no_vector_to_go_by():
    tables = input_tables([], Lexicon.from_words(["无向"]), vectors(), seed=0)
    word = tables.matrices[2]
    assert len(word) == N_SPECIAL and not word[PAD].any()
    np.testing.assert_allclose(np.linalg.norm(word[1:], axis=1), 1, rtol=1e-5)


def test_the_back_off_starts_from_the_bigrams_that_have_vectors():
    """Bigram vectors that are a linear function of their characters' are found again; without it nothing is fitted."""
    generator = np.random.default_rng(0)
    characters = [chr(0x4E00 + k) for k in range(40)]
    char = VectorTable(characters, generator.normal(size=(40, 4)).astype(np.float32))
    pairs = [a + b for a in characters for b in characters[:10]]
    both = np.concatenate([char.vectors[char.rows([pair[k] for pair in pairs])] for k in (0, 1)], 1)
    weight, bias = generator.normal(size=(8, 5)).astype(np.float32), generator.normal(size=5).astype(np.float32)
    known = replace(vectors(), char=char, bigram=VectorTable(pairs, both @ weight + bias))
    tables = input_tables([], Lexicon.from_words(WORDS), known, seed=0)
    backoff = build_tagger(replace(tiny.CONFIG, bigram_backoff=True), tables, ["PER"]).encoder.embeddings.backoff
    np.testing.assert_allclose(backoff.weight.detach().numpy(), weight.T, atol=1e-2)
    np.testing.assert_allclose(backoff.bias.detach().numpy(), bias, atol=1e-2)
    assert build_tagger(tiny.CONFIG, tables, ["PER"]).encoder.embeddings.backoff is None


def test_what_has_no_vector_is_unknown_even_if_training_saw_it():
    tables, lexicon = made()
    rows = row_of(tables, lexicon, "大无向😀")
    assert rows["chars"] == [UNK] * 4 and rows["bigrams"] == [UNK] * 4
    assert rows["words"] == [UNK]
    assert "大" in TRAINING[0]


def test_astral_characters_and_the_end_of_a_sentence_have_rows():
    tables, lexicon = made()
    rows = row_of(tables, lexicon, "𠮷江")
    assert UNK not in rows["chars"] and rows["bigrams"][0] != UNK
    assert row_of(tables, lexicon, "桥")["bigrams"] != [UNK]
    assert row_of(tables, lexicon, "桥桥")["bigrams"][0] == UNK


def test_a_users_word_has_the_users_row():
    tables, lexicon = made()
    lexicon.add("大桥", "江南")
    assert row_of(tables, lexicon, "江南大桥")["words"] == [USER, row_of(*made(), "大桥")["words"][0], USER]


def test_the_same_seed_gives_the_same_tables():
    for a, b in zip(made()[0].matrices, made()[0].matrices, strict=True):
        np.testing.assert_array_equal(a, b)


def test_vectors_with_nothing_in_common_with_the_text():
    lexicon = Lexicon.from_words(["甲乙"])
    tables = input_tables([build_lattice("子丑", lexicon.snapshot())], lexicon, vectors(), seed=0)
    assert tables.vocabulary.n_tuned == (N_SPECIAL,) * 3
    assert row_of(tables, lexicon, "甲乙")["words"] == [UNK]


def test_no_training_text_at_all():
    lexicon = Lexicon.from_words(WORDS)
    tables = input_tables([], lexicon, vectors(), seed=0)
    assert tables.vocabulary.n_tuned == (N_SPECIAL,) * 3 and tables.vocabulary.n_rows[2] == N_SPECIAL + 3


def test_a_network_starts_from_the_vectors():
    tables, _ = made()
    tagger = build_tagger(tiny.CONFIG, tables, ["PER"])
    embeddings = tagger.encoder.embeddings
    for table, matrix in zip((embeddings.char, embeddings.bigram, embeddings.word), tables.matrices, strict=True):
        rows = torch.arange(len(matrix))
        torch.testing.assert_close(table(rows), torch.from_numpy(matrix), atol=1e-3, rtol=0)  # fixed rows are float16
    assert tagger.tags == ["O", "B-PER", "M-PER", "E-PER", "S-PER"]
    assert build_tagger(tiny.CONFIG, tables, ["B", "A"], scheme="BIO").tags == ["O", "B-A", "I-A", "B-B", "I-B"]


def test_the_same_torch_seed_gives_the_same_network():
    tables, _ = made()
    weights = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        weights.append(build_tagger(tiny.CONFIG, tables, ["PER"]).state_dict())
    assert all(torch.equal(weights[0][k], weights[1][k]) for k in weights[0])
    assert any(not torch.equal(weights[0][k], weights[2][k]) for k in weights[0])


def test_features_and_their_setting_go_together():
    with pytest.raises(ValueError, match=r"config.bert is 'somewhere'"):
        build_tagger(replace(tiny.CONFIG, bert="somewhere"), made()[0], ["PER"])
