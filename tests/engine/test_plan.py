"""BatchPlan: every sentence once an epoch, within budget, the same for the same seed."""

from __future__ import annotations

from itertools import chain, islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cige.engine.plan import BatchPlan, Place
from cige.engine.settings import BatchConfig


def plan(sizes: object, *, seed: int = 1, fill: bool = False, **settings: object) -> BatchPlan:
    given = {"batch_size": 4} | settings
    pass_pairs = given.pop("pass_pairs", 10**9)
    return BatchPlan(np.array(sizes), BatchConfig(**given), seed=seed, fill=fill, pass_pairs=pass_pairs)  # type: ignore


@given(
    st.lists(st.integers(1, 80), min_size=1, max_size=60),
    st.integers(1, 9),
    st.integers(1, 20_000),
    st.integers(0, 4),
    st.integers(0, 5),
)
def test_each_epoch_reads_each_example_once_within_budget(
    sizes: list[int], batch_size: int, max_pairs: int, pool_batches: int, seed: int
) -> None:
    made = plan(sizes, batch_size=batch_size, max_pairs=max_pairs, pool_batches=pool_batches, seed=seed)
    for epoch in range(3):
        batches = made.batches(epoch)
        assert sorted(number for batch in batches for number in batch) == list(range(len(sizes)))
        for batch in batches:
            longest = max(sizes[number] for number in batch)
            assert len(batch) <= batch_size and (len(batch) == 1 or len(batch) * longest**2 <= max_pairs)
    assert made.n_steps(3) == sum(len(made.batches(epoch)) for epoch in range(3))


def test_epochs_differ_and_seeds_decide() -> None:
    n_nodes = list(range(1, 101))
    assert plan(n_nodes).batches(0) == plan(n_nodes).batches(0)
    assert plan(n_nodes).batches(0) != plan(n_nodes, seed=2).batches(0)
    made = plan(n_nodes, pool_batches=5)
    assert made.batches(0) != made.batches(1)


def test_pools_spare_padding() -> None:
    n_nodes = np.random.default_rng(0).integers(5, 200, 400)
    plain, pooled = plan(n_nodes).padding_share(), plan(n_nodes, pool_batches=25).padding_share()
    assert 0 < pooled < 0.15 < 0.4 < plain < 1
    assert plan([7] * 8).padding_share() == 0


def test_pools_do_not_order_an_epoch_by_length() -> None:
    n_nodes = np.arange(1, 401)
    means = [n_nodes[batch].mean() for batch in plan(n_nodes, pool_batches=1000).batches(0)]
    assert abs(np.corrcoef(means, np.arange(len(means)))[0, 1]) < 0.5


def test_a_filled_epoch_has_batches_of_one_size() -> None:
    sizes = np.random.default_rng(0).integers(1, 100, 30)
    made = plan(sizes, batch_size=12, pool_batches=1, fill=True)
    batches = np.array(made.batches(1))
    counts = np.bincount(batches.ravel(), minlength=30)
    assert batches.shape == (3, 12) and counts.min() == 1 and counts.max() == 2
    assert (np.diff(sizes[batches], axis=1) >= 0).all()  # sorted within each batch
    assert np.array(plan(sizes, batch_size=91, pool_batches=1, fill=True).batches(0)).shape == (1, 91)


def test_sizes_may_differ_from_epoch_to_epoch() -> None:
    made = BatchPlan(lambda epoch: np.arange(1, 10 + epoch), BatchConfig(batch_size=4), seed=1)
    assert [sorted(chain(*made.batches(epoch))) for epoch in (0, 3)] == [list(range(9)), list(range(12))]
    parts = list(islice(made.steps(Place()), 7))
    assert [part.place for part in parts] == [(0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1)]


def test_a_run_goes_on_from_any_place() -> None:
    made = plan(np.random.default_rng(0).integers(1, 100, 30), pool_batches=2, max_pairs=20_000)
    whole = list(islice(made.steps(Place()), 40))
    assert whole[-1].epoch >= 2
    for done in (0, 1, 7, 20, 39):
        start = whole[done - 1].place if done else Place()
        assert list(islice(made.steps(start), 40 - done)) == whole[done:]


@pytest.mark.parametrize(("n_processes", "batch_size", "micro"), [(2, 12, 4), (3, 12, 4), (2, 12, 50), (5, 7, 3)])
def test_processes_share_each_step(n_processes: int, batch_size: int, micro: int) -> None:
    sizes = np.random.default_rng(0).integers(1, 100, 50)
    made = plan(sizes, batch_size=batch_size, micro_batch_size=micro, pool_batches=1, fill=True)
    alone = list(islice(made.steps(Place()), 30))
    shares = [list(islice(made.steps(Place(), rank=r, n_processes=n_processes), 30)) for r in range(n_processes)]
    for step, part in enumerate(alone):
        found = []
        for share in shares:
            assert (share[step].epoch, share[step].place) == (part.epoch, part.place)
            assert share[step].passes and max(map(len, share[step].passes)) <= micro
            found += chain(*share[step].passes)
        assert sorted(found) == sorted(chain(*part.passes))


def test_passes_fit_memory() -> None:
    sizes = [10, 10, 10, 50, 50, 3, 3, 3]
    made = plan(sizes, batch_size=8, pool_batches=1, pass_pairs=3000)
    (part,) = islice(made.steps(Place()), 1)
    assert [[sizes[k] for k in one] for one in part.passes] == [[3, 3, 3, 10, 10, 10], [50], [50]]
