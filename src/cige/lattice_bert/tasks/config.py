"""TuningConfig: the settings of fine-tuning on a task, and how they are read from a recipe."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from cige.engine.settings import BatchConfig, CheckpointConfig, OptimizerConfig, ScheduleConfig, TrainingConfig
from cige.errors import RecipeError
from cige.lattice_bert.kinds import FINETUNE
from cige.recipes.ranges import check_ranges, within
from cige.recipes.recipe_file import Overrides, read_recipe_file
from cige.recipes.strict import build_strictly

LEARNING_RATES = (8e-6, 1e-5, 1.5e-5, 2e-5, 3e-5, 5e-5, 8e-5, 1e-4, 1.5e-4)
"""The learning rates of appendix C.2, from which the best is chosen on the development set."""


LEAST_ROOM = 5  # [CLS], two [SEP] and one piece of each of two texts


@dataclass(frozen=True, kw_only=True)
class TuningConfig:
    """Epochs, batch size and lengths are those of Table 5 for each task, other settings those of the released code."""

    training: TrainingConfig = field(default_factory=lambda: TrainingConfig(n_epochs=5))
    """Length of training, and evaluation."""
    optimizer: OptimizerConfig = field(default_factory=lambda: OptimizerConfig(learning_rate=3e-5, epsilon=1e-6))
    """Optimiser."""
    schedule: ScheduleConfig = field(default_factory=lambda: ScheduleConfig(warmup="10%"))
    """Learning rate schedule."""
    batches: BatchConfig = field(default_factory=lambda: BatchConfig(batch_size=16, pool_batches=50))
    """The batches of a step, counted in items, which are examples or windows of examples."""
    checkpoints: CheckpointConfig = field(default_factory=CheckpointConfig)
    """Checkpoints, from which an interrupted run resumes."""
    max_tokens: int | None = within(None, min=LEAST_ROOM)
    """Maximum number of lattice tokens of an input, including [CLS] and [SEP]."""
    max_pieces: int = within(512, min=LEAST_ROOM)
    """Maximum number of word pieces of an input, including [CLS] and [SEP]; the model may limit it further."""
    dropout_prob: float = 0.1
    """Dropout before the output layer; inside the model it is as in pre-training."""
    crf: bool = False
    """Sequence labelling: learn transition scores (released code) rather than a softmax per piece (the paper)."""
    gradient_checkpointing: bool = False
    """Keep only the input of each layer and compute the rest again for the gradient, which saves memory."""
    n_train: int | None = None
    """Train on the first n training examples only (for trials)."""
    n_dev: int | None = None
    """Evaluate on the first n development and test examples only (for trials)."""

    def __post_init__(self) -> None:
        check_ranges(self)


def load_tuning_config(recipe: str | Path, overrides: Overrides = None) -> TuningConfig:
    """Read a recipe of fine-tuning.

    Args:
        recipe: the name of a recipe that ships with cige (`finetune/tnews`) or a YAML file. With `extends:` and the
            name or path of another recipe, a file states only what differs from that recipe.
        overrides: {"training.n_epochs": 2} or ["training.n_epochs=2"]; they take precedence over the file.

    Raises:
        RecipeError: no such recipe, bad YAML, an unknown key, a wrong type or a value out of range.
    """
    return resolve_tuning_config(recipe, overrides)[0]


def resolve_tuning_config(recipe: str | Path, overrides: Overrides = None) -> tuple[TuningConfig, dict[str, str]]:
    """Like `load_tuning_config`, and also returns where each value that is not a default comes from, by key."""
    values, origins = read_recipe_file(recipe, overrides, kind=FINETUNE)
    try:
        return build_strictly(TuningConfig, values, origins), origins
    except RecipeError as reason:
        raise RecipeError(str(reason) if str(reason).startswith(str(recipe)) else f"{recipe}: {reason}") from None
