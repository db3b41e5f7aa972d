"""TuningConfig: how a task is learnt, and the reading of it from a recipe."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cige.errors import RecipeError
from cige.recipes.recipe_file import Overrides, read_recipe_file
from cige.recipes.shipped import FINETUNE
from cige.recipes.strict import build_strictly

LEARNING_RATES = (8e-6, 1e-5, 1.5e-5, 2e-5, 3e-5, 5e-5, 8e-5, 1e-4, 1.5e-4)
"""The rates that appendix C.2 chooses among on the development set."""


_LEAST_ROOM = 5  # [CLS], two [SEP] and one piece of each of two texts


@dataclass(frozen=True, kw_only=True)
class TuningConfig:
    """Epochs, batch and lengths are Table 5's for each task; what is the same for all are the released code's."""

    n_epochs: int
    """Passes over the training examples."""
    batch_size: int
    """Items a step: examples, or windows of them."""
    max_tokens: int | None = None
    """Lattice tokens of an input at most, [CLS] and [SEP] included."""
    max_pieces: int = 512
    """Characters and word pieces of an input at most, [CLS] and [SEP] included; the model may have room for fewer."""
    learning_rate: float = 3e-5
    """Highest learning rate."""
    warmup_ratio: float = 0.1
    """Share of all steps in which the learning rate rises from zero; then it falls linearly to zero."""
    weight_decay: float = 0.01
    """Decoupled weight decay of matrices and tables; biases and normalisations have none."""
    clip_norm: float = 1.0
    """Clip the gradient of a step to this norm."""
    dropout_prob: float = 0.1
    """Dropout before the last layer; within the model it is as in pre-training."""
    crf: bool = False
    """Sequence labelling: learn scores of transitions (the released code), not a softmax for each piece (the paper)."""
    pool_batches: int = 50
    """Sort by length within pools of so many batches, so that little is padded; 0 keeps the shuffled order."""
    n_train: int | None = None
    """Learn from the first n training examples only (for trials)."""
    n_dev: int | None = None
    """Measure on the first n development and test examples only (for trials)."""
    precision: Literal["fp32", "bf16"] = "fp32"
    """bf16 runs matrix products in bfloat16; weights stay float32."""

    def __post_init__(self) -> None:
        for name, expected, holds in (
            *(
                (name, "more than 0", lambda x: x > 0)
                for name in ("n_epochs", "batch_size", "learning_rate", "clip_norm")
            ),
            *((name, "1 or more", lambda x: x >= 1) for name in ("n_train", "n_dev")),
            *((name, f"{_LEAST_ROOM} or more", lambda x: x >= _LEAST_ROOM) for name in ("max_tokens", "max_pieces")),
            *((name, "0 or more", lambda x: x >= 0) for name in ("weight_decay", "pool_batches")),
            ("warmup_ratio", "from 0 to 1", lambda x: 0 <= x <= 1),
            ("dropout_prob", "from 0 to below 1", lambda x: 0 <= x < 1),
        ):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and holds(value)):
                raise RecipeError(f"{name} is {value}, expected {expected}")


def load_tuning_config(recipe: str | Path, overrides: Overrides = None) -> TuningConfig:
    """Read a recipe of fine-tuning.

    Args:
        recipe: a name that ships (`finetune/tnews`) or a YAML file; with `extends:` and another recipe's name or path a
            file states only what differs from that one.
        overrides: {"n_epochs": 2} or ["n_epochs=2"]; win over the file.

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
