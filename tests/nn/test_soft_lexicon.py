"""The four word sets of a character, their weights and their vectors, against definitions in plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cige.data.batch import LatticeBatch, collate
from cige.data.vocabulary import N_SPECIAL, USER, EncodedLattice
from cige.nn.embeddings import InputSizes, LatticeVectors
from cige.nn.soft_lexicon import SETS, SetWord, SoftLexicon, set_members, word_sets

USER_COUNT = 4
FORMS = [("smoothed", 1.0), ("smoothed", 2.5), ("smoothed", 0.0), ("counts", 1.0)]


def encoded(n_chars: int, words: list[tuple[int, int, int, int]]) -> EncodedLattice:
    """Words as (start, end, row, count)."""
    starts, ends, rows, counts = np.array(words, np.int64).reshape(-1, 4).T
    chars = np.arange(n_chars, dtype=np.int64) % 4 + N_SPECIAL
    return EncodedLattice(chars, chars * 0, rows, starts, ends, counts, counts * 0, "字" * n_chars)


# 花开公司: 花开 (used twice), 开公司 (used only within longer words), 公司 (nine times), and 花开公司 as a user's word
FLOWER = encoded(4, [(0, 2, 5, 2), (0, 4, USER, 0), (1, 4, 6, 0), (2, 4, 7, 9)])
BARE = encoded(3, [])
MANY = encoded(5, [(0, 5, 5, 3), (0, 5, USER, 0), (1, 4, 6, 0), (1, 4, 7, 0), (2, 3, USER, 0)])


def batch_of(*lattices: EncodedLattice) -> LatticeBatch:
    return collate(lattices)


def slow_sets(lattice: EncodedLattice, place: int) -> dict[str, list[int]]:
    """Which words are in which set, by the words of DCSAN's "Word Representations"."""
    sets: dict[str, list[int]] = {name: [] for name in SETS}
    for k, (start, end) in enumerate(zip(lattice.starts.tolist(), lattice.ends.tolist(), strict=True)):
        if start == place and end == place + 1:
            sets["S"].append(k)
        elif start == place:
            sets["B"].append(k)
        elif end == place + 1:
            sets["E"].append(k)
        elif start < place < end:
            sets["M"].append(k)
    return sets


def slow_weights(lattice: EncodedLattice, place: int, weighting: str, b: float) -> dict[str, list[tuple[Any, float]]]:
    """Members ("own", "none" or a word's place) with weights that sum to 1."""
    members: dict[str, list[tuple[Any, float]]] = {}
    for name, words in slow_sets(lattice, place).items():
        counts = [USER_COUNT if lattice.words[k] == USER else int(lattice.counts[k]) for k in words]
        if weighting == "smoothed":
            weights = [z + b for z in counts]
        else:
            weights = [float(z) for z in counts] if any(counts) else [1.0] * len(counts)
        once = 1 + b if weighting == "smoothed" else 1.0
        members[name] = list(zip(words, weights, strict=True))
        if name == "S":
            members[name].append(("own", once))
        elif not words:
            members[name].append(("none", once))
    total = sum(weight for group in members.values() for _, weight in group)
    return {name: [(who, weight / total) for who, weight in group] for name, group in members.items()}


@pytest.mark.parametrize(("weighting", "b"), FORMS)
def test_sets_and_weights(weighting, b):
    lattices = [FLOWER, BARE, MANY]
    sets = word_sets(batch_of(*lattices), user_count=USER_COUNT, weighting=weighting, smoothing=b)
    for row, lattice in enumerate(lattices):
        for place in range(len(lattice.chars)):
            expected_words = torch.zeros(4, sets.words.shape[3])
            expected_own, expected_none = 0.0, [0.0, 0.0, 0.0]
            for k, (_, group) in enumerate(slow_weights(lattice, place, weighting, b).items()):
                for who, weight in group:
                    if who == "own":
                        expected_own = weight
                    elif who == "none":
                        expected_none[k] = weight
                    else:
                        expected_words[k, who] = weight
            torch.testing.assert_close(sets.words[row, place], expected_words)
            assert float(sets.own[row, place]) == pytest.approx(expected_own)
            assert sets.none[row, place].tolist() == pytest.approx(expected_none)


def test_figure_of_the_module():
    (members,) = set_members(batch_of(FLOWER))
    named = [{SETS[k]: members[t, k].nonzero().flatten().tolist() for k in range(4)} for t in range(4)]
    assert named == [
        {"B": [0, 1], "M": [], "E": [], "S": []},
        {"B": [2], "M": [1], "E": [0], "S": []},
        {"B": [3], "M": [1, 2], "E": [], "S": []},
        {"B": [], "M": [], "E": [1, 2, 3], "S": []},
    ]


def test_equation_5_by_hand():
    """The last character of 花开公司 with b = 1: E holds a user's word (4), 开公司 (0) and 公司 (9)."""
    sets = word_sets(batch_of(FLOWER), user_count=USER_COUNT, weighting="smoothed", smoothing=1.0)
    z = (4 + 1) + (0 + 1) + (9 + 1) + 3 * (1 + 1)  # NONE in B and M, and the character itself
    assert sets.words[0, 3, 2].tolist() == pytest.approx([0, 5 / z, 1 / z, 10 / z])
    assert sets.shares[0, 3].tolist() == pytest.approx([0, 5 / z, 1 / z, 10 / z])
    assert float(sets.own[0, 3]) == pytest.approx(2 / z) and sets.none[0, 3].tolist() == pytest.approx(
        [2 / z, 2 / z, 0]
    )


words_of_a_sentence = st.integers(1, 9).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.lists(
            st.tuples(st.integers(0, n - 1), st.integers(1, n), st.sampled_from([USER, 5, 6]), st.integers(0, 5)).map(
                lambda w: (w[0], max(w[0] + 1, w[1]), w[2], 0 if w[2] == USER else w[3])
            ),
            max_size=8,
        ),
    )
)


@settings(max_examples=50)
@given(st.lists(words_of_a_sentence, min_size=1, max_size=4), st.sampled_from(FORMS))
def test_weights_sum_to_one_and_padding_changes_nothing(sentences, form):
    weighting, b = form
    lattices = [encoded(n, words) for n, words in sentences]
    together = word_sets(batch_of(*lattices), user_count=3, weighting=weighting, smoothing=b)
    total = together.words.sum((2, 3)) + together.own + together.none.sum(2)
    torch.testing.assert_close(total, torch.ones_like(total))
    for row, lattice in enumerate(lattices):
        alone = word_sets(batch_of(lattice), user_count=3, weighting=weighting, smoothing=b)
        n_chars, n_words = len(lattice.chars), len(lattice.words)
        torch.testing.assert_close(together.words[row, :n_chars, :, :n_words], alone.words[0, :n_chars, :, :n_words])
        assert (together.words[row, :, :, n_words:] == 0).all()
        torch.testing.assert_close(together.own[row, :n_chars], alone.own[0, :n_chars])
        torch.testing.assert_close(together.none[row, :n_chars], alone.none[0, :n_chars])


def test_sets_as_lists_put_the_heaviest_first():
    sets = word_sets(batch_of(MANY, FLOWER), user_count=USER_COUNT, weighting="counts")
    flower = sets.listed(1, 4)
    assert [[member.word for member in flower[3][name]] for name in SETS] == [[], [], [3, 1, 2], [None]]
    assert flower[3]["E"][2].weight == 0  # 开公司 is a member though its count gives it nothing
    assert flower[0]["M"] == [] and flower[0]["S"] == [SetWord(None, pytest.approx(1 / 9))]


# vectors


def module(*, weighting: str = "smoothed", tuned: bool = True) -> tuple[SoftLexicon, LatticeVectors]:
    torch.manual_seed(0)
    sizes = InputSizes(n_rows=(9, 4, 9), n_tuned=(7, 4, 7), widths=(5, 5, 6), user_count=USER_COUNT)
    embeddings = LatticeVectors(sizes, dropout_prob=0.0, word_dropout_prob=0.0, use_bigrams=False, char_words=True)
    for table in (embeddings.word, embeddings.char_word):
        assert table is not None
        table.load_vectors(torch.randn(9, 6))
    soft = SoftLexicon(word_width=6, user_count=USER_COUNT, weighting=weighting, smoothing=2.0, tuned=tuned)
    return soft, embeddings


@pytest.mark.parametrize(("weighting", "factor"), [("smoothed", 1), ("counts", 4)])
def test_vectors_are_weighted_sums_in_the_order_of_the_sets(weighting, factor):
    soft, embeddings = module(weighting=weighting)
    lattices = [FLOWER, BARE, MANY]
    batch = batch_of(*lattices)
    with torch.no_grad():
        vectors, _ = soft(batch, embeddings)
        words, own = embeddings.words(batch), embeddings.char_words(batch)
    assert vectors.shape == (3, 5, 24) and soft.width == 24
    for row, lattice in enumerate(lattices):
        for place in range(len(lattice.chars)):
            parts = []
            for group in slow_weights(lattice, place, weighting, 2.0).values():
                part = torch.zeros(6)
                for who, weight in group:
                    others = {"own": own[row, place], "none": soft.none.detach()}
                    part = part + factor * weight * (words[row, who] if isinstance(who, int) else others[who])
                parts.append(part)
            torch.testing.assert_close(vectors[row, place], torch.cat(parts), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("tuned", [True, False])
def test_gradients_reach_word_vectors_only_where_they_are_tuned(tuned):
    soft, embeddings = module(tuned=tuned)
    vectors, _ = soft(batch_of(FLOWER, BARE), embeddings)
    vectors.square().sum().backward()
    gradient = embeddings.word.tuned.grad
    assert (gradient[5:7].abs().sum(1) > 0).tolist() == [tuned, tuned]
    assert gradient[USER].abs().sum() > 0  # what a user's word is worth is always learnt
    assert (embeddings.char_word.tuned.grad[N_SPECIAL:].abs().sum() > 0) == tuned
    assert soft.none.grad.abs().sum() > 0


def test_a_batch_of_empty_sentences():
    soft, embeddings = module()
    vectors, sets = soft(batch_of(encoded(0, []), encoded(0, [])), embeddings)
    assert torch.isfinite(vectors).all() and torch.isfinite(sets.words).all() and sets.listed(0, 0) == []
