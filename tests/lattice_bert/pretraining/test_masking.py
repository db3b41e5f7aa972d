"""What is selected, what replaces it, and that nothing left in sight tells what was hidden."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cige.lattice_bert.encoder.segments import segments_of
from cige.lattice_bert.pretraining.masking import NO_GROUP, budget, corrupt, hide, select_evenly, select_within


@st.composite
def lattices(draw) -> tuple[np.ndarray, np.ndarray]:
    """(starts, half-open ends) of a random lattice: every piece, and some words over them."""
    n = draw(st.integers(1, 25))
    words = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(2, 4)), max_size=12))
    spans = {(k, k + 1) for k in range(n)} | {(s, s + k) for s, k in words if s + k <= n}
    ordered = sorted(spans, key=lambda span: (span[1], span[1] - span[0]))
    return np.array([s for s, _ in ordered]), np.array([e for _, e in ordered])


@pytest.mark.parametrize("select", [select_evenly, select_within])
@given(lattice=lattices(), n=st.integers(1, 12), seed=st.integers(0, 99))
def test_masked_segments_are_whole_and_hide_all_that_overlaps(select, lattice, n: int, seed: int) -> None:
    starts, ends = lattice
    selected = select(segments_of(starts, ends), n, np.random.default_rng(seed))
    for i in range(len(starts)):
        for j in range(len(starts)):
            if starts[i] < ends[j] and starts[j] < ends[i]:  # they share a piece
                assert selected[i] == selected[j]


some_groups = st.lists(st.integers(NO_GROUP, 6), min_size=1, max_size=40)


@given(some_groups, st.integers(1, 9), st.integers(0, 99))
def test_within_a_budget_no_group_that_would_still_fit_is_left(groups, n_most: int, seed: int) -> None:
    groups = np.array(groups)
    selected = select_within(groups, n_most, np.random.default_rng(seed))
    left = n_most - int(selected.sum())
    assert left >= 0 and not selected[groups == NO_GROUP].any()
    for group in set(groups.tolist()) - {NO_GROUP}:
        own = selected[groups == group]
        assert own.all() or (not own.any() and len(own) > left)


@given(some_groups, st.integers(1, 45), st.integers(0, 99))
def test_even_selection_takes_whole_groups_and_stays_near_its_number(groups, n: int, seed: int) -> None:
    groups = np.array(groups)
    selected = select_evenly(groups, n, np.random.default_rng(seed))
    sizes = np.bincount(groups[groups != NO_GROUP], minlength=1)
    assert not selected[groups == NO_GROUP].any()
    for group in set(groups.tolist()) - {NO_GROUP}:
        assert len(set(selected[groups == group].tolist())) == 1
    # Only the group at either end of the arc is cut by it.
    assert min(n, sizes.sum()) - sizes.max() < selected.sum() < n + sizes.max() or n >= sizes.sum()
    assert selected.sum() == sizes.sum() or n < sizes.sum()


def test_groups_of_one_token_are_chosen_alike_and_exactly() -> None:
    groups = np.arange(20)
    for select in (select_evenly, select_within):
        rng = np.random.default_rng(0)
        draws = np.array([select(groups, 3, rng) for _ in range(4000)])
        assert (draws.sum(1) == 3).all()
        assert abs(draws.sum(0) - 600).max() < 5 * np.sqrt(600 * 0.85)


def test_the_chance_of_a_group_does_not_depend_on_its_length() -> None:
    sizes = [1] * 10 + [2] * 5 + [5] * 4 + [12] * 2 + [36]
    groups = np.repeat(np.arange(len(sizes)), sizes)
    rng, n_draws = np.random.default_rng(0), 20_000
    draws = np.array([select_evenly(groups, 15, rng) for _ in range(n_draws)])
    chance = 15 / len(groups)
    spread = np.sqrt(n_draws * chance * (1 - chance))
    first = np.cumsum([0, *sizes[:-1]])
    assert abs(draws.sum(0)[first] - n_draws * chance).max() < 4 * spread
    assert abs(draws.sum(1).mean() - 15) < 4 * draws.sum(1).std() / np.sqrt(n_draws)
    # Within a budget of 15 the group of 36 is never selected, and single tokens more often than those of 12.
    rng = np.random.default_rng(0)
    within = np.array([select_within(groups, 15, rng) for _ in range(2000)]).mean(0)[first]
    assert within[-1] == 0 and within[:10].min() > 1.3 * within[-3:-1].max()


def test_nothing_to_select() -> None:
    nothing = np.full(3, NO_GROUP)
    for select in (select_evenly, select_within):
        assert not select(nothing, 2, np.random.default_rng(0)).any()


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
