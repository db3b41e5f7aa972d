"""The learning rate over a run: warm-up, then one of three ways down."""

from __future__ import annotations

from collections.abc import Callable

from cige.training.plan import BatchPlan
from cige.training.recipe import TrainingConfig


def learning_rate_factor(config: TrainingConfig, plan: BatchPlan) -> Callable[[int], float]:
    """A function from the number of steps done to the multiple of the base learning rate in the next step.

    Warm-up rises linearly from 0 to 1. Then "linear" falls to 0 at the last step; "inverse_epoch" is
    1 / (1 + decay * epochs done), the paper's decay of 0.05; "constant" stays. The factors are multiplied, so an
    inverse decay runs during warm-up already.
    """
    n_steps = len(plan)
    if config.warmup_epochs is None:
        n_warmup = round(config.warmup_ratio * n_steps)
    else:
        n_warmup = round(config.warmup_epochs * n_steps / plan.n_epochs)

    def factor(step: int) -> float:
        warm = min(1.0, step / n_warmup) if n_warmup else 1.0
        if config.schedule == "linear":
            return rise_and_fall(step, n_warmup=n_warmup, n_steps=n_steps)
        if config.schedule == "inverse_epoch":
            return warm / (1 + config.decay * int(plan.epoch_of(step)))
        return warm

    return factor


def rise_and_fall(step: int, *, n_warmup: int, n_steps: int) -> float:
    """Rises linearly from 0 to 1 at step `n_warmup`, then falls linearly to 0 at step `n_steps`."""
    return step / n_warmup if step < n_warmup else max(0.0, (n_steps - step) / max(1, n_steps - n_warmup))
