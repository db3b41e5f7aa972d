"""Settings that all kinds of training share: optimiser, schedule, batches and checkpoints.

Every recipe has them as the sections `optimizer`, `schedule`, `batches` and `checkpoints`, with its own defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from cige.errors import RecipeError
from cige.recipes.ranges import OutOfRange, check_ranges, within
from cige.recipes.spans import parse_span, steps_of

Precision = Literal["fp32", "bf16"]
Sharding = Literal["ddp", "fsdp"]


@dataclass(frozen=True)
class OptimizerConfig:
    """The optimiser and its settings."""

    name: Literal["adamw", "sgd"] = "adamw"
    """AdamW, or SGD with momentum."""
    learning_rate: float = within(1e-3, above=0)
    """The peak learning rate."""
    weight_decay: float = within(0.01, min=0)
    """Weight decay of matrices, which AdamW decouples from the gradient; biases and normalisation gains have none."""
    betas: tuple[float, ...] = within((0.9, 0.999), min=0, below=1)
    """AdamW: decay rates of the means of gradients and of squared gradients."""
    epsilon: float = within(1e-8, above=0)
    """AdamW: the constant that is added to the denominator."""
    momentum: float = within(0.9, min=0, below=1)
    """SGD: the momentum."""
    clip_norm: float | None = within(1.0, above=0)
    """Maximum norm of the gradient of a step; larger gradients are scaled down. null does not clip."""
    clip_value: float | None = within(None, above=0)
    """Maximum absolute value in the gradient, as an alternative to `clip_norm`. null does not clip."""

    def __post_init__(self) -> None:
        check_ranges(self)
        if len(self.betas) != 2:
            raise OutOfRange("betas", f"has {len(self.betas)} numbers, expected 2")
        if self.betas[0] ** 2 >= self.betas[1]:
            raise OutOfRange("betas", f"is {self.betas}, expected the first below the root of the second")
        if self.clip_norm is not None and self.clip_value is not None:
            raise OutOfRange(
                "clip_value", f"is {self.clip_value} and clip_norm is {self.clip_norm}, expected one of them to be null"
            )


@dataclass(frozen=True)
class ScheduleConfig:
    """The learning rate over the run."""

    name: Literal["linear", "inverse_epoch", "constant"] = "linear"
    """After the warm-up, the learning rate decreases linearly to zero, is divided by 1 + decay * epochs done, or stays
    constant."""
    decay: float = within(0.05, min=0)
    """The decay of "inverse_epoch"."""
    warmup: str = within("5%", span=("steps", "epochs", "%"))
    """How long the learning rate increases from zero: "400 steps", "10 epochs", or "5%" of all steps."""

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True)
class BatchConfig:
    """The batch of an optimiser step."""

    batch_size: int = within(10, min=1)
    """Maximum number of examples per step."""
    micro_batch_size: int | None = within(None, min=1)
    """Maximum number of examples per forward pass; a step takes several passes if needed, with the same gradient. null
    reads the whole batch at once."""
    max_pairs: int | None = within(None, min=1)
    """Maximum number of node pairs per step (examples x longest squared), which limits memory; null for no limit."""
    pool_batches: int = within(0, min=0)
    """Sort by length within pools of this many batches, to reduce padding; 0 keeps the shuffled order."""

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True)
class CheckpointConfig:
    """Checkpoints, from which an interrupted run resumes."""

    every: str | None = within(None, span=("steps",))
    """How often to write a checkpoint, such as "500 steps", in addition to the end of each epoch or phase; null writes
    only those at the ends."""
    keep: int = within(1, min=1)
    """How many checkpoints to keep."""
    in_background: bool = False
    """Write a copy of the state while training continues, which takes memory for the copy."""

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True)
class TrainingConfig:
    """The length of a run in epochs, and which epoch is kept."""

    n_epochs: int = 14
    """Number of passes over the training examples."""
    precision: Precision = "fp32"
    """bf16 runs matrix products in bfloat16; weights stay float32."""
    average_weights: float = within(0.0, min=0, below=1)
    """Decay per step of an exponential moving average of the weights, which is then evaluated and saved instead of the
    weights; 0 turns it off."""
    eval_start_epoch: int = within(1, min=1)
    """The first epoch (from 1) after which the model is evaluated on the development examples."""
    patience: int = 0
    """Stop after this many evaluated epochs without improvement; 0 never stops early."""

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.eval_start_epoch > self.n_epochs:
            raise OutOfRange(
                "eval_start_epoch",
                f"is {self.eval_start_epoch}, expected at most {self.n_epochs} (n_epochs): none would be scored",
            )


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


def warmup_problems(
    config: ScheduleConfig, *, n_steps: int | None = None, n_epochs: int | None = None
) -> Iterator[str]:
    """The problems of a warm-up, if any, given the length of the run in steps or (if `n_epochs` is not None) epochs."""
    amount, unit = parse_span(config.warmup) or (0.0, "")
    most = {"%": 100, "epochs": n_epochs, "steps": n_steps}.get(unit)
    if unit == "epochs" and n_epochs is None:
        yield f"schedule.warmup is {config.warmup!r}, but the run is measured in steps; expected steps or %"
    elif most and amount > most:
        yield f"schedule.warmup is {config.warmup!r}, expected at most {most:,} {unit}"
