"""TuningConfig: how a task is learnt, and the reading of it from a recipe."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from cige.engine.settings import BatchConfig, CheckpointConfig, OptimizerConfig, ScheduleConfig, TrainingConfig
from cige.errors import RecipeError
from cige.recipes.ranges import check_ranges, within
from cige.recipes.recipe_file import Overrides, read_recipe_file
from cige.recipes.shipped import FINETUNE
from cige.recipes.strict import build_strictly

LEARNING_RATES = (8e-6, 1e-5, 1.5e-5, 2e-5, 3e-5, 5e-5, 8e-5, 1e-4, 1.5e-4)
"""The learning rates that appendix C.2 chooses among on the development set."""


_LEAST_ROOM = 5  # [CLS], two [SEP] and one piece of each of two texts


@dataclass(frozen=True, kw_only=True)
class TuningConfig:
    """Epochs, batch and lengths are Table 5's for each task; what is the same for all are the released code's."""

    training: TrainingConfig = field(default_factory=lambda: TrainingConfig(n_epochs=5))
    """How long to train, and what to keep."""
    optimizer: OptimizerConfig = field(default_factory=lambda: OptimizerConfig(learning_rate=3e-5, epsilon=1e-6))
    """How to optimise."""
    schedule: ScheduleConfig = field(default_factory=lambda: ScheduleConfig(warmup="10%"))
    """The learning rate over the run."""
    batches: BatchConfig = field(default_factory=lambda: BatchConfig(batch_size=16, pool_batches=50))
    """What a step reads: items, which are examples or windows of them."""
    checkpoints: CheckpointConfig = field(default_factory=CheckpointConfig)
    """What a run that is cut off continues from."""
    max_tokens: int | None = within(None, min=_LEAST_ROOM)
    """Lattice tokens of an input at most, [CLS] and [SEP] included."""
    max_pieces: int = within(512, min=_LEAST_ROOM)
    """Characters and word pieces of an input at most, [CLS] and [SEP] included; the model may have room for fewer."""
    dropout_prob: float = 0.1
    """Dropout before the last layer; within the model it is as in pre-training."""
    crf: bool = False
    """Sequence labelling: learn scores of transitions (the released code), not a softmax for each piece (the paper)."""
    n_train: int | None = None
    """Learn from the first n training examples only (for trials)."""
    n_dev: int | None = None
    """Measure on the first n development and test examples only (for trials)."""

    def __post_init__(self) -> None:
        check_ranges(self)


def load_tuning_config(recipe: str | Path, overrides: Overrides = None) -> TuningConfig:
    """Read a recipe of fine-tuning.

    Args:
        recipe: a name that ships (`finetune/tnews`) or a YAML file; with `extends:` and another recipe's name or path a
            file states only what differs from that one.
        overrides: {"training.n_epochs": 2} or ["training.n_epochs=2"]; win over the file.

    Raises:
        RecipeError: no such recipe, bad YAML, an unknown key, a wrong type or a value out of range.
    """
    return resolve_tuning_config(recipe, overrides)[0]


def resolve_tuning_config(recipe: str | Path, overrides: Overrides = None) -> tuple[TuningConfig, dict[str, str]]:
    """As `load_tuning_config`; and key -> where its value stands, for those that are not defaults."""
    values, origins = read_recipe_file(recipe, overrides, kind=FINETUNE)
    try:
        return build_strictly(TuningConfig, values, origins), origins
    except RecipeError as reason:
        raise RecipeError(str(reason) if str(reason).startswith(str(recipe)) else f"{recipe}: {reason}") from None
