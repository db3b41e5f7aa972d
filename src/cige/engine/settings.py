"""Settings that all kinds of training share: optimiser, schedule, batches and checkpoints.

Every recipe has them as the sections `optimizer`, `schedule`, `batches` and `checkpoints`, with defaults of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cige.recipes.ranges import OutOfRange, check_ranges, within

Precision = Literal["fp32", "bf16"]


@dataclass(frozen=True)
class OptimizerConfig:
    """How a gradient changes the weights."""

    name: Literal["adamw", "sgd"] = "adamw"
    """AdamW, or SGD with momentum."""
    learning_rate: float = within(1e-3, above=0)
    """The highest learning rate of the run."""
    weight_decay: float = within(0.01, min=0)
    """Decoupled weight decay of matrices; biases and the gains of normalisations have none."""
    betas: tuple[float, ...] = within((0.9, 0.999), min=0, below=1)
    """AdamW: decay of the mean of the gradients and of the mean of their squares."""
    epsilon: float = within(1e-8, above=0)
    """AdamW: added to the root of the mean of squares."""
    momentum: float = within(0.9, min=0, below=1)
    """SGD: the momentum."""
    clip_norm: float | None = within(1.0, above=0)
    """Scale the gradient of a step down to this norm; null leaves it as it is."""
    clip_value: float | None = within(None, above=0)
    """Clip each value of the gradient to this size, in place of its norm; null leaves it as it is."""

    def __post_init__(self) -> None:
        check_ranges(self)
        if len(self.betas) != 2:
            raise OutOfRange("betas", f"has {len(self.betas)} numbers, expected 2")
        if self.betas[0] ** 2 >= self.betas[1]:
            raise OutOfRange("betas", f"is {self.betas}, expected the first below the root of the second")
        if self.clip_norm is not None and self.clip_value is not None:
            raise OutOfRange(
                "clip_value", f"is {self.clip_value} beside clip_norm {self.clip_norm}, expected one of them to be null"
            )


@dataclass(frozen=True)
class ScheduleConfig:
    """The learning rate over the run."""

    name: Literal["linear", "inverse_epoch", "constant"] = "linear"
    """After the warm-up: falls linearly to zero; is divided by 1 + decay * epochs done; or stays."""
    decay: float = within(0.05, min=0)
    """The decay of "inverse_epoch"."""
    warmup: str = within("5%", span=("steps", "epochs", "%"))
    """How long the learning rate rises from zero: "400 steps", "10 epochs", or "5%" of all steps."""

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True)
class BatchConfig:
    """What one step of the optimiser reads."""

    batch_size: int = within(10, min=1)
    """Examples per step, at most."""
    micro_batch_size: int | None = within(None, min=1)
    """Examples per forward pass, at most: a step takes as many passes as it needs, with equal gradients; null for the
    whole batch."""
    max_pairs: int | None = within(None, min=1)
    """Node pairs per step, at most (examples x longest squared): bounds memory; null for no limit."""
    pool_batches: int = within(0, min=0)
    """Sort by length within pools of this many batches, so that little is padded; 0 keeps the shuffled order."""

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True)
class CheckpointConfig:
    """What a run that is cut off continues from."""

    every: str | None = within(None, span=("steps",))
    """Write a checkpoint every "500 steps", besides the one at the end of each epoch or phase; null for those alone."""
    keep: int = within(1, min=1)
    """How many checkpoints to keep."""

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True)
class TrainingConfig:
    """How long a run takes that is measured in epochs, and which of them is kept."""

    n_epochs: int = 14
    """Passes over the training examples."""
    precision: Precision = "fp32"
    """bf16 runs matrix products in bfloat16; weights stay float32."""
    average_weights: float = within(0.0, min=0, below=1)
    """Decay per step of an exponential moving average of the weights, which is then what is scored and kept; 0 is
    off."""
    eval_start_epoch: int = within(1, min=1)
    """The first epoch (from 1) after which the development examples are scored."""
    patience: int = 0
    """Stop after this many scored epochs without a better score; 0 never stops."""

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.eval_start_epoch > self.n_epochs:
            raise OutOfRange(
                "eval_start_epoch",
                f"is {self.eval_start_epoch}, expected at most {self.n_epochs} (n_epochs): none would be scored",
            )
