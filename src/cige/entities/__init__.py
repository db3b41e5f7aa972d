"""Entities of texts, and scores of predicted entities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cige.public_names import imported_on_use

if TYPE_CHECKING:
    from cige.entities.entity import Entity
    from cige.entities.labels import map_labels, parse_label_map
    from cige.entities.scores import Counts, Report, score, surfaces

__all__ = ["Counts", "Entity", "Report", "map_labels", "parse_label_map", "score", "surfaces"]

__getattr__ = imported_on_use(
    __name__,
    entity=["Entity"],
    labels=["map_labels", "parse_label_map"],
    scores=["Counts", "Report", "score", "surfaces"],
)
