"""Recipes resolve to the settings that the published results were made with.

`resolved.json` holds every setting, defaults included, of each recipe as it was when each was a file of its own (see
`resolved_recipes.py`). Where a setting is renamed, rename it there; a value there changes only with the results.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from resolved_recipes import assert_resolved, published

from cige.recipes.shipped import shipped
from cige.training.recipe import load_recipe

PUBLISHED = published(Path(__file__).with_name("resolved.json"))


def test_none_is_missing() -> None:
    assert len(PUBLISHED) == 112 + 1  # tagging, own data
    assert set(PUBLISHED) <= set(shipped())


@pytest.mark.parametrize("name", PUBLISHED)
def test_settings_are_those_of_the_results(name: str) -> None:
    assert_resolved(load_recipe(name), PUBLISHED[name])
