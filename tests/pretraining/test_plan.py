"""Steps: the same batches for any number of processes, and a place to go on from at any of them."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from test_dataset import IDS, ROOM

from cige.pretraining.data import PretrainingData
from cige.pretraining.dataset import InstanceConfig, InstanceSet
from cige.pretraining.plan import Place, StepData, StepPlan


@pytest.fixture
def instances(data: PretrainingData) -> InstanceSet:
    return InstanceSet(data.train, config=InstanceConfig(), ids=IDS, room=ROOM, seed=3)


def plan_of(instances: InstanceSet, **changes) -> StepPlan:
    return StepPlan(instances, **{"batch_size": 12, "micro_batch_size": 4, "seed": 5} | changes)


def test_an_epoch_holds_every_instance_and_is_filled_up(instances: InstanceSet) -> None:
    plan = plan_of(instances)
    batches, n = plan.batches(1), len(instances.n_tokens(1))
    counts = np.bincount(batches.ravel(), minlength=n)
    assert counts.min() == 1 and counts.max() <= 2 and batches.shape == (-(-n // 12), 12)
    lengths = instances.n_tokens(1)[batches]
    assert (np.diff(lengths, axis=1) >= 0).all()
    assert batches.tolist() != plan.batches(2)[: len(batches)].tolist()


def test_a_batch_may_be_larger_than_the_corpus(instances: InstanceSet) -> None:
    n = len(instances.n_tokens(0))
    assert plan_of(instances, batch_size=3 * n + 1).batches(0).shape == (1, 3 * n + 1)


@pytest.mark.parametrize(("n_processes", "batch_size", "micro"), [(2, 12, 4), (3, 12, 4), (2, 12, 50), (5, 7, 3)])
def test_processes_share_each_step(instances: InstanceSet, n_processes: int, batch_size: int, micro: int) -> None:
    plan = plan_of(instances, batch_size=batch_size, micro_batch_size=micro)
    alone = list(islice(plan.steps(Place()), 30))
    shares = [list(islice(plan.steps(Place(), rank=r, n_processes=n_processes), 30)) for r in range(n_processes)]
    for step, (epoch, part) in enumerate(alone):
        found = []
        for share in shares:
            assert share[step][0] == epoch and share[step][1].place == part.place
            assert share[step][1].micro_batches and max(map(len, share[step][1].micro_batches)) <= micro
            found += [number for numbers in share[step][1].micro_batches for number in numbers]
        assert sorted(found) == sorted(number for numbers in part.micro_batches for number in numbers)


def test_a_run_goes_on_from_any_place(instances: InstanceSet) -> None:
    plan = plan_of(instances)
    whole = list(islice(plan.steps(Place()), 40))
    assert whole[-1][0] >= 2
    for done in (0, 1, 7, 20, 39):
        start = whole[done - 1][1].place if done else Place()
        assert list(islice(plan.steps(start), 40 - done)) == whole[done:]


def test_step_data_makes_the_batches_that_are_asked_for(instances: InstanceSet) -> None:
    epoch, part = next(plan_of(instances).steps(Place(epoch=1)))
    place, batches = StepData(instances)[epoch, part]
    assert place == part.place == Place(1, 1) and [len(b.tokens) for b in batches] == [4, 4, 4]
    for batch, numbers in zip(batches, part.micro_batches, strict=True):
        masked = [instances.masked(epoch, number) for number in numbers]
        assert batch.n_targets == sum(len(m.positions) for m in masked) == int((batch.targets >= 0).sum())
        assert batch.n_tokens == int(batch.tokens.n_tokens.sum())
        assert batch.n_labels == int((batch.sentence_labels >= 0).sum())
        for row, m in enumerate(masked):
            n = len(m.positions)
            assert batch.positions[row, :n].tolist() == m.positions.tolist()
            assert batch.targets[row, :n].tolist() == m.targets.tolist()
            assert (batch.targets[row, n:] == -1).all()
