"""Word -> row through sorted hashes."""

from cige.lexicon import vectors
from cige.lexicon.vectors import HashIndex, word_hash
from cige.lexicon.word_blob import WordBlob

WORDS = [f"词{i}" for i in range(300)]


def test_every_word_is_found_and_no_other(tmp_path):
    words = WordBlob.from_words(WORDS)
    HashIndex.build(words).save(tmp_path)
    index = HashIndex.load(tmp_path, words)
    assert index.find(WORDS).tolist() == list(range(300))
    assert index.find(["词", "词300", "", "\ud800"]).tolist() == [-1] * 4


def test_equal_hashes_are_told_apart_by_the_words(monkeypatch):
    monkeypatch.setattr(vectors, "word_hash", lambda word: len(word))
    index = HashIndex.build(WordBlob.from_words(WORDS))
    assert index.find([*WORDS, "词x", "词1000"]).tolist() == [*range(300), -1, -1]


def test_the_hash_is_the_same_on_every_machine():
    assert word_hash("南京") == 0x7F7F93BBA29F2434
