"""What the settings of a recipe must be beyond their types, so that a slip is told before the data is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from cige.errors import RecipeError
from cige.lexicon.gazetteers import MAX_GAZETTEERS

if TYPE_CHECKING:
    from cige.training.recipe import Recipe

_INCLUSIVE = tuple(  # may be 1, unlike a dropout
    f"{section}.{name}" for section in ("user_words", "mentions") for name in ("sentence_prob", "entity_prob")
)

_RANGES: dict[str, tuple[Callable[[Any], bool], tuple[str, ...]]] = {
    "at least 1": (
        lambda value: value >= 1,
        (
            "data.n_train",
            "training.n_epochs",
            "training.batch_size",
            "training.max_pairs",
            "training.eval_start_epoch",
        ),
    ),
    "0 or more": (
        lambda value: value >= 0,
        (
            "data.n_held_out",
            "user_words.n_false",
            "training.pool_batches",
            "training.embedding_learning_rate_scale",
            "training.bert_learning_rate_scale",
            "training.weight_decay",
            "training.decay",
            "training.patience",
            "training.checkpoint_steps",
        ),
    ),
    "more than 0": (lambda value: value > 0, ("training.learning_rate", "training.clip_threshold")),
    "from 0 to below 1": (
        lambda value: 0 <= value < 1,
        ("training.warmup_ratio", "training.average_weights", "training.momentum"),
    ),
}


def check_recipe(recipe: Recipe, source: str) -> None:
    """Raise RecipeError, beginning with `source`, for a value out of range or settings that contradict each other."""
    for expected, (holds, keys) in _RANGES.items():
        for key in keys:
            value = _value(recipe, key)
            if value is not None and not holds(value):
                raise RecipeError(f"{source}: {key} is {value}, expected {expected}")
    for name, value in vars(recipe.model).items():
        least = 1 if name.startswith("n_") or name.endswith("width") else 0
        if type(value) is int and value < least:
            raise RecipeError(f"{source}: model.{name} is {value}, expected {'at least 1' if least else '0 or more'}")
    for key, value in _probabilities(recipe):
        if not 0 <= value <= 1 or (value == 1 and key not in _INCLUSIVE):
            raise RecipeError(f"{source}: {key} is {value}, expected a probability")
    for message in _contradictions(recipe):
        raise RecipeError(f"{source}: {message}")


def _contradictions(recipe: Recipe) -> list[str]:
    data, model, training = recipe.data, recipe.model, recipe.training
    found = []
    if (data.dataset is None) == (data.train is None):
        found.append("give either data.dataset or data.train (a file), not both and not neither")
    if data.dataset is not None and (data.dev or data.test):
        found.append("data.dev and data.test go with data.train; with data.dataset the files are known")
    if data.train is not None and not data.dev and not data.n_held_out:
        found.append("data.dev is missing: give a file, or data.n_held_out to hold out training sentences")
    if data.dev is not None and data.n_held_out:
        found.append("data.dev and data.n_held_out are both given: dev is a file or held out, not both")
    found += model.problems()
    if len(recipe.lexicon.gazetteers) > MAX_GAZETTEERS:
        found.append(
            f"lexicon.gazetteers has {len(recipe.lexicon.gazetteers)} lists, expected {MAX_GAZETTEERS} or less"
        )
    if model.bert_tuned and model.bert is None:
        found.append("model.bert_tuned is true, but model.bert names no BERT to tune")
    if recipe.start_from is not None:
        found += [
            f"{section} is given, but words and vectors are those of start_from ({recipe.start_from}); leave it out"
            for section in ("vectors", "lexicon")
            if getattr(recipe, section) != type(getattr(recipe, section))()
        ]
    if training.warmup_epochs is not None and not 0 <= training.warmup_epochs <= training.n_epochs:
        found.append(
            f"training.warmup_epochs is {training.warmup_epochs}, expected 0 to {training.n_epochs} (n_epochs)"
        )
    if training.eval_start_epoch > training.n_epochs:
        found.append(
            f"training.eval_start_epoch is {training.eval_start_epoch}, after the last epoch: none would be scored"
        )
    return found


def _probabilities(recipe: Recipe) -> list[tuple[str, float]]:
    return [
        (f"{part}.{field.name}", getattr(section, field.name))
        for part, section in (("model", recipe.model), ("user_words", recipe.user_words), ("mentions", recipe.mentions))
        for field in fields(section)
        if field.name.endswith("_prob")
    ]


def _value(recipe: Recipe, key: str) -> Any:
    part, _, name = key.partition(".")
    return getattr(getattr(recipe, part), name)
