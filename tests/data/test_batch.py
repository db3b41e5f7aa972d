"""Padding, and batches within a budget."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cige.data.batch import batches_by_budget, collate
from cige.data.vocabulary import PAD, EncodedLattice


def encoded(n_chars: int, n_words: int = 0, *, first: int = 3) -> EncodedLattice:
    return EncodedLattice(
        chars=np.arange(first, first + n_chars),
        bigrams=np.arange(first + 100, first + 100 + n_chars),
        words=np.arange(first + 200, first + 200 + n_words),
        starts=np.arange(n_words),
        ends=np.arange(n_words) + 2,
        counts=np.arange(n_words) + 1,
        groups=np.ones(n_words, int),
        text="x" * n_chars,
    )


def test_collate_pads_to_the_longest():
    batch = collate(
        [encoded(3, 1), encoded(0), encoded(5, 2)], [np.array([1, 2, 3]), np.zeros(0, int), np.ones(5, int)]
    )
    assert batch.n_chars.tolist() == [3, 0, 5] and batch.n_words.tolist() == [1, 0, 2]
    assert batch.chars.tolist() == [[3, 4, 5, 0, 0], [0] * 5, [3, 4, 5, 6, 7]]
    assert batch.bigrams.tolist() == [[103, 104, 105, 0, 0], [0] * 5, [103, 104, 105, 106, 107]]
    assert batch.words.tolist() == [[203, 0], [0, 0], [203, 204]]
    assert batch.word_starts.tolist() == [[0, 0], [0, 0], [0, 1]] and batch.word_ends.tolist() == [
        [2, 0],
        [0, 0],
        [2, 3],
    ]
    assert batch.tags.tolist() == [[1, 2, 3, 0, 0], [0] * 5, [1] * 5]
    assert batch.texts == ("xxx", "", "xxxxx") and len(batch) == 3
    assert batch.char_mask.tolist() == [[True] * 3 + [False] * 2, [False] * 5, [True] * 5]
    assert batch.word_mask.tolist() == [[True, False], [False, False], [True, True]]
    assert all(x.dtype == torch.int64 for x in (batch.chars, batch.bigrams, batch.words, batch.tags, batch.n_chars))


def test_collate_of_sentences_without_words_or_characters_keeps_one_column():
    batch = collate([encoded(0), encoded(0)])
    for part in (batch.chars, batch.bigrams, batch.words, batch.word_starts, batch.word_ends):
        assert part.tolist() == [[PAD], [PAD]]
    assert not batch.char_mask.any() and not batch.word_mask.any() and batch.tags is None
    assert collate([encoded(4)]).words.shape == (1, 1)


def test_collate_of_no_sentence():
    batch = collate([], [])
    assert len(batch) == 0 and batch.chars.shape == (0, 1) and batch.tags.shape == (0, 1)


def test_moving_a_batch_moves_all_tensors():
    batch = collate([encoded(2, 1)], [np.array([1, 2])]).to("meta")
    assert {x.device.type for x in vars(batch).values() if isinstance(x, torch.Tensor)} == {"meta"}
    assert batch.texts == ("xx",)
    assert collate([encoded(2, 1)]).to("meta").tags is None


SIZES = st.lists(st.integers(0, 60), max_size=60)


def cost(sizes: list[int]) -> int:
    return len(sizes) * max(sizes) ** 2


@given(SIZES, st.integers(1, 12), st.integers(1, 20_000))
def test_batches_cover_all_in_order_within_their_budgets(sizes, max_sentences, max_pairs):
    batches = list(batches_by_budget(sizes, max_sentences=max_sentences, max_pairs=max_pairs))
    assert [k for batch in batches for k in batch] == list(range(len(sizes)))
    for batch in batches:
        assert 1 <= len(batch) <= max_sentences
        assert len(batch) == 1 or cost([sizes[k] for k in batch]) <= max_pairs


@given(SIZES, st.integers(1, 12), st.integers(1, 20_000))
def test_no_batch_is_closed_before_it_must_be(sizes, max_sentences, max_pairs):
    batches = list(batches_by_budget(sizes, max_sentences=max_sentences, max_pairs=max_pairs))
    for batch, following in pairwise(batches):
        grown = [sizes[k] for k in (*batch, following[0])]
        assert len(grown) > max_sentences or cost(grown) > max_pairs


def test_a_sentence_over_the_budget_is_alone():
    assert list(batches_by_budget([1, 1, 99, 1, 1], max_sentences=9, max_pairs=50)) == [[0, 1], [2], [3, 4]]


@pytest.mark.parametrize("sizes", [[], [5]])
def test_few_sentences(sizes):
    expected = [[0]] if sizes else []
    assert list(batches_by_budget(sizes, max_sentences=1, max_pairs=1)) == expected
