"""The learning rate schedule: a warm-up, then one of three forms."""

from __future__ import annotations

from collections.abc import Callable

from cige.engine.settings import ScheduleConfig
from cige.errors import RecipeError
from cige.recipes.spans import parse_span, steps_of


def learning_rate_factor(
    config: ScheduleConfig, *, n_steps: int, n_epochs: int | None = None
) -> Callable[[int, int], float]:
    """A function of (steps done, epochs done) that returns the factor of the base learning rate in the next step.

    The warm-up rises linearly from 0 to 1. Then "linear" decreases to 0 at step `n_steps`, "inverse_epoch" is 1 / (1 +
    decay * epochs done), and "constant" remains 1. The factor of "inverse_epoch" also applies during the warm-up.

    Raises:
        RecipeError: the warm-up is longer than the run, or it is in epochs and the run is measured in steps.
    """
    for problem in warmup_problems(config, n_steps=n_steps, n_epochs=n_epochs):
        raise RecipeError(problem)
    n_warmup = steps_of(config.warmup, n_steps=n_steps, n_epochs=n_epochs)

    def factor(step: int, epoch: int) -> float:
        warm = min(1.0, step / n_warmup) if n_warmup else 1.0
        if config.name == "inverse_epoch":
            return warm / (1 + config.decay * epoch)
        if config.name == "constant" or step < n_warmup:
            return warm
        return max(0.0, (n_steps - step) / max(1, n_steps - n_warmup))

    return factor


def warmup_problems(config: ScheduleConfig, *, n_steps: int | None = None, n_epochs: int | None = None) -> list[str]:
    """The problems of a warm-up, given what is known about the length of the run; empty if there are none.

    Args:
        n_epochs: None if the length of the run is given in steps.
    """
    amount, unit = parse_span(config.warmup) or (0.0, "")
    if unit == "epochs" and n_epochs is None:
        return [f"schedule.warmup is {config.warmup!r}, but the run is measured in steps; expected steps or %"]
    most = {"%": 100, "epochs": n_epochs, "steps": n_steps}.get(unit)
    return (
        [f"schedule.warmup is {config.warmup!r}, expected at most {most:,} {unit}"] if amount > (most or amount) else []
    )
