"""Recipes resolve to the settings that the published results were made with, as in `tests/recipes/test_resolved.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from resolved_recipes import assert_resolved, published

from cige.lattice_bert.kinds import FINETUNE, PRETRAIN
from cige.lattice_bert.pretraining.recipe import load_pretrain_recipe
from cige.lattice_bert.tasks.config import load_tuning_config
from cige.recipes.shipped import shipped

PUBLISHED = published(Path(__file__).with_name("resolved.json"))
LOAD: dict[str, Any] = {PRETRAIN: load_pretrain_recipe, FINETUNE: load_tuning_config}


def test_none_is_missing() -> None:
    assert len(PUBLISHED) == 21 + 13  # pre-training, fine-tuning
    assert set(PUBLISHED) <= set(shipped())


@pytest.mark.parametrize("name", PUBLISHED)
def test_settings_are_those_of_the_results(name: str) -> None:
    assert_resolved(LOAD[shipped()[name].kind](name), PUBLISHED[name])
