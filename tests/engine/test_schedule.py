"""The learning rate, step by step."""

from __future__ import annotations

import numpy as np
import pytest

from cige.training.plan import BatchPlan
from cige.training.recipe import TrainingConfig
from cige.training.schedule import learning_rate_factor


def factors(**settings: object) -> list[float]:
    """Factors of a run of 4 epochs of 5 steps."""
    plan = BatchPlan(np.ones(10, int), n_epochs=4, batch_size=2, max_pairs=10**9, pool_batches=0, seed=0)
    assert plan.steps_after == [5, 10, 15, 20]
    factor = learning_rate_factor(TrainingConfig(n_epochs=4, **settings), plan)  # type: ignore[arg-type]
    return [factor(step) for step in range(21)]


def test_linear() -> None:
    found = factors(schedule="linear", warmup_ratio=0.2)
    assert found[:5] == pytest.approx([0, 0.25, 0.5, 0.75, 1])
    assert found[4:] == pytest.approx([(20 - k) / 16 for k in range(4, 21)])
    assert found[20] == 0


def test_linear_as_transformers_computes_it() -> None:
    import torch
    from transformers import get_linear_schedule_with_warmup

    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    (expected,) = get_linear_schedule_with_warmup(optimizer, 4, 20).lr_lambdas
    assert factors(schedule="linear", warmup_ratio=0.2) == pytest.approx([expected(k) for k in range(21)])


def test_inverse_epoch_is_the_papers_decay() -> None:
    found = factors(schedule="inverse_epoch", decay=0.05, warmup_ratio=0.0)
    assert [found[k] for k in (0, 4, 5, 10, 19)] == pytest.approx([1, 1, 1 / 1.05, 1 / 1.1, 1 / 1.15])


def test_warm_up_in_epochs_and_decay_together() -> None:
    found = factors(schedule="inverse_epoch", decay=0.05, warmup_epochs=2.0)
    assert [found[k] for k in (0, 1, 5, 9, 10)] == pytest.approx([0, 0.1, 0.5 / 1.05, 0.9 / 1.05, 1 / 1.1])


def test_constant() -> None:
    assert factors(schedule="constant", warmup_ratio=0.1)[:4] == pytest.approx([0, 0.5, 1, 1])
    assert set(factors(schedule="constant", warmup_ratio=0.0)) == {1.0}
