"""Batches within a budget."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cige.nn.budget import batches_by_budget

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
