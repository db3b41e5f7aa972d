"""Entities: what was found in a text, and how good a set of findings is."""

from cige.entities.entity import Entity
from cige.entities.labels import map_labels, parse_label_map
from cige.entities.scores import Counts, Report, score, surfaces

__all__ = ["Counts", "Entity", "Report", "map_labels", "parse_label_map", "score", "surfaces"]
