"""BatchPlan: every sentence once an epoch, within budget, the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cige.training.plan import BatchPlan


def plan(n_nodes: object, **options: int) -> BatchPlan:
    settings = {"n_epochs": 2, "batch_size": 4, "max_pairs": 10**9, "pool_batches": 0, "seed": 1} | options
    return BatchPlan(np.array(n_nodes), **settings)  # type: ignore[arg-type]


@given(
    st.lists(st.integers(1, 80), min_size=1, max_size=60),
    st.integers(1, 9),
    st.integers(1, 20_000),
    st.integers(0, 4),
    st.integers(0, 5),
)
def test_each_epoch_reads_each_sentence_once_within_budget(
    n_nodes: list[int], batch_size: int, max_pairs: int, pool_batches: int, seed: int
) -> None:
    made = plan(n_nodes, n_epochs=3, batch_size=batch_size, max_pairs=max_pairs, pool_batches=pool_batches, seed=seed)
    batches = list(made)
    assert len(batches) == len(made) == made.steps_after[-1]
    first = 0
    for epoch, last in enumerate(made.steps_after):
        keys = [key for batch in batches[first:last] for key in batch]
        assert {e for e, _ in keys} == {epoch} and sorted(i for _, i in keys) == list(range(len(n_nodes)))
        first = last
    for batch in batches:
        longest = max(n_nodes[i] for _, i in batch)
        assert len(batch) <= batch_size and (len(batch) == 1 or len(batch) * longest**2 <= max_pairs)


def test_epochs_differ_and_seeds_decide() -> None:
    n_nodes = list(range(1, 101))
    assert list(plan(n_nodes)) == list(plan(n_nodes))
    assert list(plan(n_nodes)) != list(plan(n_nodes, seed=2))
    made = plan(n_nodes, pool_batches=5)
    assert made.epoch(0) != made.epoch(1)


def test_pools_spare_padding() -> None:
    n_nodes = np.random.default_rng(0).integers(5, 200, 400)
    plain, pooled = plan(n_nodes).padding_share(), plan(n_nodes, pool_batches=25).padding_share()
    assert 0 < pooled < 0.15 < 0.4 < plain < 1
    assert plan([7] * 8).padding_share() == 0


def test_pools_do_not_order_an_epoch_by_length() -> None:
    n_nodes = np.arange(1, 401)
    means = [n_nodes[batch].mean() for batch in plan(n_nodes, pool_batches=1000).epoch(0)]
    assert abs(np.corrcoef(means, np.arange(len(means)))[0, 1]) < 0.5


def test_epoch_of_a_step() -> None:
    made = plan([1] * 8)  # 2 steps an epoch
    assert [made.epoch_of(step) for step in range(5)] == [0.0, 0.5, 1.0, 1.5, 2.0]


def test_epochs_of_unequal_length() -> None:
    made = plan(np.random.default_rng(0).integers(1, 100, 200), n_epochs=6, max_pairs=20_000)
    lengths = np.diff([0, *made.steps_after])
    assert len(set(lengths.tolist())) > 1  # the case that a fixed number of steps an epoch would get wrong
    assert [made.epoch_of(step) for step in made.steps_after] == pytest.approx(range(1, 7))
