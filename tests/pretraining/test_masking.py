"""What is selected, what replaces it, and that nothing left in sight tells what was hidden."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cige.lattice.segments import segments_of
from cige.pretraining.masking import NO_GROUP, budget, corrupt, hide, select_groups


@st.composite
def lattices(draw) -> tuple[np.ndarray, np.ndarray]:
    """(starts, half-open ends) of a random lattice: every piece, and some words over them."""
    n = draw(st.integers(1, 25))
    words = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(2, 4)), max_size=12))
    spans = {(k, k + 1) for k in range(n)} | {(s, s + k) for s, k in words if s + k <= n}
    ordered = sorted(spans, key=lambda span: (span[1], span[1] - span[0]))
    return np.array([s for s, _ in ordered]), np.array([e for _, e in ordered])


@given(lattices(), st.integers(1, 12), st.integers(0, 99))
def test_masked_segments_are_whole_and_hide_all_that_overlaps(lattice, n_most: int, seed: int) -> None:
    starts, ends = lattice
    selected = select_groups(segments_of(starts, ends), n_most, np.random.default_rng(seed))
    assert selected.sum() <= n_most
    for i in range(len(starts)):
        for j in range(len(starts)):
            if starts[i] < ends[j] and starts[j] < ends[i]:  # they share a piece
                assert selected[i] == selected[j]


@given(st.lists(st.integers(NO_GROUP, 6), min_size=1, max_size=40), st.integers(1, 9), st.integers(0, 99))
def test_only_whole_groups_are_selected_and_none_that_would_still_fit_is_left(groups, n_most: int, seed: int) -> None:
    groups = np.array(groups)
    selected = select_groups(groups, n_most, np.random.default_rng(seed))
    left = n_most - int(selected.sum())
    assert left >= 0 and not selected[groups == NO_GROUP].any()
    for group in set(groups.tolist()) - {NO_GROUP}:
        own = selected[groups == group]
        assert own.all() or (not own.any() and len(own) > left)


def test_groups_are_chosen_alike() -> None:
    groups = np.arange(20)
    rng = np.random.default_rng(0)
    counts = sum(select_groups(groups, 3, rng).astype(int) for _ in range(4000))
    assert counts.sum() == 12_000 and abs(counts - 600).max() < 5 * np.sqrt(600 * 0.85)


@pytest.mark.parametrize(("n_tokens", "expected"), [(3, 1), (20, 3), (173, 26), (692, 104)])
def test_budget_counts_special_tokens(n_tokens: int, expected: int) -> None:
    assert budget(n_tokens, 0.15) == expected


def test_selected_tokens_become_mask_random_or_stay() -> None:
    n, n_ids = 200_000, 1000
    rng = np.random.default_rng(1)
    ids = np.full(n, 7, np.int32)
    selected = rng.random(n) < 0.5
    found = corrupt(ids, selected, mask_id=4, n_ids=n_ids, rng=rng)
    assert (found[~selected] == 7).all() and (ids == 7).all() and found.dtype == ids.dtype
    hidden = found[selected]
    is_random = (hidden != 4) & (hidden != 7)
    for share, expected in (((hidden == 4).mean(), 0.8), (is_random.mean(), 0.1), ((hidden == 7).mean(), 0.1)):
        assert abs(share - expected) < 0.005
    assert len(np.unique(hidden[is_random])) == n_ids - 2


def test_hide_replaces_every_selected_token() -> None:
    ids = np.array([9, 8, 7], np.int32)
    assert hide(ids, np.array([True, False, True]), mask_id=4).tolist() == [4, 8, 4] and ids[0] == 9
