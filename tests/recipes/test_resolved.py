"""Recipes resolve to the settings that the published results were made with.

`resolved.json` holds every setting, defaults included, of each recipe as it was when each was a file of its own: one
recipe per line, flat keys, and with `like` only what differs from that recipe (less the keys of `without`). Where a
setting is renamed, rename it there; a value there changes only with the results.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from cige.pretraining.recipe import load_pretrain_recipe
from cige.recipes.shipped import FINETUNE, PRETRAIN, shipped
from cige.tasks.config import load_tuning_config
from cige.training.recipe import load_recipe


def published() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, stated in json.loads(Path(__file__).with_name("resolved.json").read_text(encoding="utf-8")).items():
        whole = dict(found.get(stated.pop("like", ""), {}))
        for key in stated.pop("without", []):
            del whole[key]
        found[name] = whole | stated
    return found


PUBLISHED = published()


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = list(value) if isinstance(value, tuple) else value
    return found


def test_none_is_missing() -> None:
    assert len(PUBLISHED) == 112 + 1 + 21 + 13  # tagging, own data, pre-training, fine-tuning
    assert set(PUBLISHED) <= set(shipped())


@pytest.mark.parametrize("name", PUBLISHED)
def test_settings_are_those_of_the_results(name: str) -> None:
    load: Any = {PRETRAIN: load_pretrain_recipe, FINETUNE: load_tuning_config}.get(shipped()[name].kind, load_recipe)
    found = flat(asdict(load(name)))
    assert {key: repr(value) for key, value in found.items()} == {k: repr(v) for k, v in PUBLISHED[name].items()}
