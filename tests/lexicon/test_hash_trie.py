"""The table of prefixes: what is in it, and what cannot be put in."""

import numpy as np
import pytest

from cige.errors import LexiconError
from cige.lexicon.hash_trie import (
    CHAR_BITS,
    FIRST_STATE,
    FLAG_BITS,
    HAS_LONGER,
    IS_WORD,
    KEYS_FILE,
    NUMBERS_FILE,
    HashTrie,
    home,
)
from cige.lexicon.word_blob import WordBlob

WORDS = ["南京", "南京市", "市长", "长江", "长江大桥", "大桥", "\U00020bb7野家", "ab"]


def build(words):
    return HashTrie.build(WordBlob.from_words(words))


def prefixes(trie):
    """Every prefix in the table with its flags and number, read from the slots alone."""
    found = {}
    keys = {slot: int(entry) for slot, entry in enumerate(trie.keys.tolist()) if entry}

    def text(slot):
        key = keys[slot] >> FLAG_BITS
        state, char = key >> CHAR_BITS, chr(key & ((1 << CHAR_BITS) - 1))
        return (chr(state) if state < FIRST_STATE else text(state - FIRST_STATE)) + char

    for slot, entry in keys.items():
        is_word = bool(entry & IS_WORD)
        found[text(slot)] = (is_word, bool(entry & HAS_LONGER), int(trie.numbers[slot]) if is_word else None)
    return found


def test_the_table_holds_every_prefix_of_two_or_more_characters_and_nothing_else():
    expected = {}
    for number, word in enumerate(WORDS):
        for end in range(2, len(word) + 1):
            is_word, has_longer, old = expected.get(word[:end], (False, False, None))
            whole = end == len(word)
            expected[word[:end]] = (is_word or whole, has_longer or not whole, number if whole else old)
    assert prefixes(build(WORDS)) == expected
    trie = build(WORDS)
    assert (trie.n_words, trie.max_chars) == (8, 4)


def test_every_entry_lies_within_max_probes_of_its_home_and_no_gap_is_between():
    trie = build([f"词{chr(0x4E00 + i)}{chr(0x4E00 + j)}" for i in range(60) for j in range(60)])
    n_slots = len(trie.keys)
    slots = np.flatnonzero(trie.keys)
    homes = home(trie.keys[slots] >> np.uint64(FLAG_BITS), n_slots)
    steps = (slots - homes) % n_slots
    assert steps.max() + 1 <= trie.max_probes
    for begin, n_steps in zip(homes.tolist(), steps.tolist(), strict=True):
        assert trie.keys[(begin + np.arange(n_steps)) % n_slots].all()
    assert len(slots) / n_slots < 0.68


def test_no_words_and_one_word():
    assert build([]).keys.tolist() == [0] and build([]).max_chars == 0
    assert prefixes(build(["南京"])) == {"南京": (True, False, 0)}


@pytest.mark.parametrize(
    ("words", "message"), [(["南京", "市"], "word 1 has less than two"), (["ab", "cd", "ab"], "a word comes twice")]
)
def test_words_that_no_table_can_hold(words, message):
    with pytest.raises(ValueError, match=message):
        build(words)


def test_save_and_load(tmp_path):
    trie = build(WORDS)
    trie.save(tmp_path)
    facts = {"max_probes": trie.max_probes, "max_chars": 4, "n_words": 8}
    loaded = HashTrie.load(tmp_path, **facts)
    assert prefixes(loaded) == prefixes(trie)
    assert isinstance(loaded.keys.base, np.memmap) and isinstance(loaded.numbers.base, np.memmap)
    for other in (np.zeros(3, dtype=np.uint32), np.zeros(len(trie.keys), dtype=np.int64), np.zeros(0, dtype=np.uint32)):
        np.save(tmp_path / NUMBERS_FILE, other)
        with pytest.raises(LexiconError, match="does not belong"):
            HashTrie.load(tmp_path, **facts)
    (tmp_path / KEYS_FILE).write_bytes(b"no array")
    with pytest.raises(LexiconError, match=KEYS_FILE):
        HashTrie.load(tmp_path, **facts)
