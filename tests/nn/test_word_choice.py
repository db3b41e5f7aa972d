"""The words that a character reads: at most M, by two rules, whatever the order and the padding of the words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cige.data.batch import LatticeBatch, collate
from cige.data.vocabulary import N_SPECIAL, USER, EncodedLattice
from cige.nn.word_choice import PlacedWords, choose_words

CHOICES = ["longest", "left"]


def encoded(n_chars: int, words: list[tuple[int, int, bool]]) -> EncodedLattice:
    starts, ends, is_user = (np.array([word[k] for word in words], np.int64) for k in range(3))
    rows = np.where(is_user.astype(bool), USER, N_SPECIAL)
    nothing, chars = np.zeros(len(words), np.int64), np.ones(n_chars, np.int64)
    return EncodedLattice(chars, chars, rows, starts, ends, nothing, nothing, "字" * n_chars)


def chosen(n_chars: int, words: list[tuple[int, int, bool]], *, max_words: int, choice: str) -> list[set[int]]:
    batch = collate([encoded(n_chars, words)])
    return as_sets(batch, max_words=max_words, choice=choice)[0]


def as_sets(batch: LatticeBatch, **options: object) -> list[list[set[int]]]:
    is_user, n_chars = batch.words == USER, batch.chars.shape[1]
    words = PlacedWords(batch.word_starts, batch.word_ends, batch.word_mask, is_user, n_chars)
    found = choose_words(words, **options).numpy()
    return [
        [set(np.flatnonzero(row).tolist()) for row in rows[:n]] for rows, n in zip(found, batch.n_chars, strict=True)
    ]


def test_longest_words_first_and_the_users_before_them():
    words = [(0, 2, False), (0, 4, False), (1, 3, False), (1, 2, True)]
    assert chosen(4, words, max_words=1, choice="longest") == [{1}, {3}, {1}, {1}]
    assert chosen(4, words, max_words=2, choice="longest") == [{0, 1}, {1, 3}, {1, 2}, {1}]
    assert chosen(4, words, max_words=9, choice="longest") == [{0, 1}, {0, 1, 2, 3}, {1, 2}, {1}]


def test_from_left_a_word_is_read_by_all_of_its_characters_or_none():
    words = [(0, 2, False), (0, 4, False), (1, 3, False), (2, 4, False), (1, 2, False)]
    assert chosen(4, words, max_words=1, choice="left") == [{0}, {0}, {3}, {3}]
    assert chosen(4, words, max_words=2, choice="left") == [{0, 1}, {0, 1}, {1, 3}, {1, 3}]
    assert chosen(4, words, max_words=9, choice="left") == [{0, 1}, {0, 1, 2}, {1, 2, 3}, {1, 3}]


def test_from_left_a_word_of_one_character_is_read_if_there_is_no_other():
    assert chosen(3, [(0, 1, False), (1, 2, False), (1, 3, False)], max_words=5, choice="left") == [{0}, {2}, {2}]
    twice = [(0, 1, False), (0, 1, True)]
    assert chosen(1, twice, max_words=1, choice="left") == [{0}] and chosen(
        1, twice, max_words=1, choice="longest"
    ) == [{1}]


@st.composite
def lattices(draw) -> tuple[int, list[tuple[int, int, bool]]]:
    n_chars = draw(st.integers(1, 9))
    span = st.tuples(st.integers(0, n_chars - 1), st.integers(1, 5), st.booleans())
    words = [(start, min(n_chars, start + length), user) for start, length, user in draw(st.lists(span, max_size=14))]
    return n_chars, words


@settings(max_examples=80, deadline=None)
@given(st.lists(lattices(), min_size=1, max_size=3), st.integers(1, 5), st.sampled_from(CHOICES), st.randoms())
def test_properties(sentences, max_words, choice, random):
    together = as_sets(collate([encoded(*one) for one in sentences]), max_words=max_words, choice=choice)
    for (n_chars, words), sets in zip(sentences, together, strict=True):
        assert sets == chosen(n_chars, words, max_words=max_words, choice=choice)  # padding changes nothing
        inside = [{k for k, (s, e, _) in enumerate(words) if s <= t < e} for t in range(n_chars)]
        for t, own in enumerate(sets):
            assert own <= inside[t] and len(own) <= max_words
            if choice == "longest":
                assert len(own) == min(max_words, len(inside[t]))
                users = {k for k in inside[t] if words[k][2]}
                assert users <= own or own <= users
                if max_words >= len(inside[t]):
                    assert own == inside[t]
        distinct = sorted(set(words))  # with all spans different, the order of words does not matter
        distinct = list({(s, e): (s, e, u) for s, e, u in distinct}.values())
        shuffled = distinct.copy()
        random.shuffle(shuffled)
        spans = [
            [{order[k] for k in own} for own in chosen(n_chars, order, max_words=max_words, choice=choice)]
            for order in (distinct, shuffled)
        ]
        assert spans[0] == spans[1]


@pytest.mark.parametrize("choice", CHOICES)
def test_no_words_and_no_characters(choice):
    batch = collate([encoded(0, []), encoded(2, [])])
    assert as_sets(batch, max_words=5, choice=choice) == [[], [set(), set()]]
