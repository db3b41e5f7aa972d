"""PairGridConfig: the settings of the head that scores pairs of characters instead of tagging characters."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from cige.data.tags import SCHEMES, are_tags_of
from cige.folders.checked_settings import check_settings
from cige.folders.kinds import GRID_TAGGER
from cige.json_text import JsonObject
from cige.recipes.ranges import within

MAX_LENGTH = 1 << 12


@dataclass(frozen=True, kw_only=True)
class PairGridConfig:
    """The settings of `head: pair_grid`."""

    scores: Literal["spans", "relations"] = "spans"
    """"spans" scores every span (GlobalPointer): entities may be nested. "relations" finds which characters follow one
    another in an entity (W2NER): entities may also be discontinuous."""
    max_length: int | None = within(None, min=1)
    """The maximum length of entities in characters, which is the width of the grid's band; null for the longest entity
    of the training sentences. Longer entities cannot be found."""
    head_width: int = within(64, min=2)
    """"spans": the width of the vectors of starts and ends, an even number."""
    efficient: bool = False
    """"spans": whether all types share these vectors, with fewer weights."""
    pair_width: int = within(96, min=1)
    """"relations": the width of the convolutions over pairs."""
    biaffine_width: int = within(512, min=1)
    """"relations": the width of the co-predictor's vectors."""
    grid_dropout_prob: float = 0.5
    """"relations": dropout on pairs."""
    predictor_dropout_prob: float = 0.33
    """"relations": dropout in the co-predictor."""

    def problems(self) -> list[str]:
        """The problems of settings that have the right types; empty if they are valid."""
        if self.head_width % 2:
            return [f"pair_grid.head_width is {self.head_width}, expected an even number"]
        return []


def head_of_manifest(facts: JsonObject) -> PairGridConfig | None:
    """The settings of the head in the manifest of a model of nested entities; None for a CRF.

    Raises:
        ValueError: they are not valid, or the tags are not those of the labels.
    """
    if facts["kind"] != GRID_TAGGER:
        if not are_tags_of(facts["tags"], facts["labels"], facts["scheme"]):
            raise ValueError(f"{len(facts['tags'])} tags that are not those of its labels in {facts['scheme']}")
        return None
    labels, given = facts["labels"], facts.get("pair_grid")
    if not isinstance(labels, list) or not all(isinstance(label, str) and label for label in labels):
        raise ValueError(f"labels is {labels!r:.60}; expected a list of strings")
    if facts["tags"] != sorted(set(labels)):
        raise ValueError(f"{len(facts['tags'])} tags; those of a pair grid are its labels")
    if facts["scheme"] not in SCHEMES:
        raise ValueError(f"scheme is {facts['scheme']!r:.40}; expected one of {', '.join(SCHEMES)}")
    names = {one.name for one in fields(PairGridConfig)}
    if not isinstance(given, dict) or not given.keys() <= names:
        raise ValueError(f"pair_grid is {given!r:.60}; expected settings of {', '.join(sorted(names))}")
    config = PairGridConfig(**given)
    try:
        check_settings(config)
    except ValueError as reason:
        raise ValueError(str(reason).replace("config.", "pair_grid.", 1)) from None
    if config.max_length is None or not 1 <= config.max_length <= MAX_LENGTH:
        raise ValueError(f"pair_grid.max_length is {config.max_length}; expected 1 to {MAX_LENGTH} characters")
    if problems := config.problems():
        raise ValueError(problems[0])
    return config
