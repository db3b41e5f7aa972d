"""Heads: the settings of a recipe's pair grid for its training sentences, and gold annotations as its cells."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

from cige.data.gold_spans import GoldRelations, GoldSpans
from cige.data.sentence import Sentence
from cige.models.pair_grid_config import PairGridConfig
from cige.text.counted import counted
from cige.training.recipe import Recipe


class TooLongWarning(UserWarning):
    """Some labelled entities are longer than the entities that a model can find."""


def head_of(recipe: Recipe, train: Sequence[Sentence], dev: Sequence[Sentence]) -> PairGridConfig | None:
    """The settings of the pair grid with the length of the longest entity it finds; None for a CRF.

    A TooLongWarning tells how many labelled entities are longer.
    """
    if recipe.head == "crf":
        return None
    head = recipe.pair_grid
    if head.max_length is None:
        longest = max((span.end - span.start for sentence in train for span in sentence.spans), default=1)
        head = replace(head, max_length=longest)
    assert head.max_length is not None
    for what, sentences in (("training", train), ("development", dev)):
        n_lost = sum(span.end - span.start > head.max_length for sentence in sentences for span in sentence.spans)
        if n_lost:
            warnings.warn(
                f"{recipe.name}: {counted(n_lost, f'{what} entity', f'{what} entities')} longer than "
                f"{counted(head.max_length, 'character')} cannot be found; pair_grid.max_length is the limit",
                TooLongWarning,
                stacklevel=2,
            )
    return head


def gold_of(head: PairGridConfig, labels: Sequence[str]) -> GoldSpans:
    """The conversion of gold annotations to the cells of a pair grid."""
    assert head.max_length is not None
    return (GoldSpans if head.scores == "spans" else GoldRelations)(labels, head.max_length)
