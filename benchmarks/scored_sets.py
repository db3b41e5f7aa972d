"""The development sentences on which the two models of the package are scored, and the domains that they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from cige.recipes.shipped import NAMES, TODAY
from cige.training.recipe import SourceConfig, load_recipe
from cige.training.sources import Source, read_sources

UNSEEN = {
    "msra": SourceConfig(n_held_out=2000),
    "weibo": SourceConfig(),
    "cluener": SourceConfig(),
    "resume": SourceConfig(),
}
"""Sets that people annotated and that nothing of the bundled model was trained or calibrated on."""
RECIPES = (TODAY, NAMES)
DOMAINS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    TODAY: {
        "today": ("today", "today_wide"),
        "news": ("people1998",),
        "posts": ("cmner",),
        "encyclopedia": ("uner_gsdsimp",),
    },
    NAMES: {
        "news": ("msra", "people1998", "time"),
        "headlines": ("cluener",),
        "posts": ("weibo",),
        "tweets": ("cmner",),
        "encyclopedia": ("uner_gsdsimp",),
        "resumes": ("resume",),
        "products": ("ecommerce",),
    },
}
"""The sets of each domain, by the recipe of the model; a model is calibrated on these."""


def scored_sets(recipe: str, data_dir: str | Path | None) -> list[Source]:
    """The sets of a recipe with development sentences; for the bundled model, UNSEEN as well."""
    data = load_recipe(recipe).data
    if recipe == TODAY:
        data = replace(data, sources={**data.sources, **UNSEEN})
    return [source for source in read_sources(data, data_dir)[0] if source.dev]
