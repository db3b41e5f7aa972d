"""Settings of a recipe that contradict each other, found before any data is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cige.engine.schedule import warmup_problems
from cige.errors import RecipeError
from cige.lexicon.gazetteers import MAX_GAZETTEERS

if TYPE_CHECKING:
    from cige.training.recipe import Recipe


def check_recipe(recipe: Recipe, source: str) -> None:
    """Raise RecipeError, beginning with `source`, for settings that contradict each other."""
    for message in _contradictions(recipe):
        raise RecipeError(f"{source}: {message}")


def _contradictions(recipe: Recipe) -> list[str]:
    data, model = recipe.data, recipe.model
    found = []
    if (data.dataset is None) == (data.train is None):
        found.append("give either data.dataset or data.train (a file), not both and not neither")
    if data.dataset is not None and (data.dev or data.test):
        found.append("data.dev and data.test go with data.train; with data.dataset the files are known")
    if data.train is not None and not data.dev and not data.n_held_out:
        found.append("data.dev is missing: give a file, or data.n_held_out to hold out training sentences")
    if data.dev is not None and data.n_held_out:
        found.append("data.dev and data.n_held_out are both given: dev is a file or held out, not both")
    found += model.problems() + warmup_problems(recipe.schedule, n_epochs=recipe.training.n_epochs)
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
    return found
