"""How often training text uses each word: against two slow readings of the definition."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cige.data.vocabulary import count_words
from cige.lattice.lattice import Lattice, build_lattice
from cige.lexicon.lexicon import Lexicon

WORDS = ["甲乙", "乙丙", "甲乙丙", "丙甲", "甲甲", "甲甲甲", "乙丙甲乙", "丙丙"]
TEXTS = st.lists(st.text("甲乙丙丁", max_size=12), max_size=4)


def counted(texts: list[str], words: list[str] = WORDS) -> dict[str, int]:
    lexicon = Lexicon.from_words(words)
    lattices = [build_lattice(text, lexicon.snapshot()) for text in texts]
    counts = count_words(lattices, len(lexicon))
    assert counts.dtype == np.int32 and counts.shape == (len(lexicon),)
    return {lexicon.word(k): int(n) for k, n in enumerate(counts) if n}


def spans(text: str, words: list[str]) -> list[tuple[int, int]]:
    return [(i, j) for i in range(len(text)) for j in range(i + 1, len(text) + 1) if text[i:j] in words]


@given(TEXTS)
def test_an_occurrence_counts_unless_a_longer_match_covers_it(texts):
    expected: Counter[str] = Counter()
    for text in texts:
        found = spans(text, WORDS)
        for i, j in found:
            if not any(a <= i and j <= b and (a, b) != (i, j) for a, b in found):
                expected[text[i:j]] += 1
    assert counted(texts) == dict(expected)


@given(TEXTS)
def test_taking_the_longest_first_gives_the_same(texts):
    """The released algorithm, on spans: take the longest match, drop every match within it, go on."""
    expected: Counter[str] = Counter()
    for text in texts:
        left = sorted(spans(text, WORDS), key=lambda span: span[0] - span[1])
        while left:
            a, b = left[0]
            expected[text[a:b]] += 1
            left = [(i, j) for i, j in left if not (a <= i and j <= b)]
    assert counted(texts) == dict(expected)


def test_a_word_alone_counts_though_it_is_covered_elsewhere_in_the_sentence():
    assert counted(["甲乙丙丁甲乙"]) == {"甲乙丙": 1, "甲乙": 1}
    assert counted(["甲乙丙", "甲乙"]) == {"甲乙丙": 1, "甲乙": 1}


def test_words_that_cross_both_count():
    assert counted(["甲乙丙"], ["甲乙", "乙丙"]) == {"甲乙": 1, "乙丙": 1}


def test_nothing_to_count():
    assert counted([]) == {} and counted(["", "丁"]) == {}


def test_a_users_words_neither_count_nor_cover():
    lexicon = Lexicon.from_words(["甲乙"])
    lexicon.add("甲乙丙")
    lattice = build_lattice("甲乙丙", lexicon.snapshot())
    assert lattice.is_user.any()
    assert count_words([lattice], len(lexicon)).tolist() == [1]


def test_order_of_the_words_does_not_matter():
    lexicon = Lexicon.from_words(WORDS)
    lattice = build_lattice("甲甲甲乙丙甲乙丙丙", lexicon.snapshot())
    mixed = Lattice(lattice.text, lattice.words[::-1], lattice.n_base)
    assert count_words([mixed], len(lexicon)).tolist() == count_words([lattice], len(lexicon)).tolist()
