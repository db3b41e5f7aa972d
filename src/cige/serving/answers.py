"""Answers: the bodies of responses, made piece by piece in the thread of the work, so no step blocks others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cige.entities.entity import Entity, EntityJson
from cige.json_text import json_bytes
from cige.text.utf16 import utf16_offsets

PIECE = 512  # entities that are converted at once; a million of them as Python objects would take a gigabyte


@dataclass(frozen=True)
class Answer:
    """The body of a response, and how many entities of each label it has."""

    body: bytes
    labels: Counter[str]


def with_results(head: Mapping[str, object], results: Iterable[bytes]) -> bytes:
    """A JSON object with the fields of `head`, and the JSON texts of the results as a list `results`."""
    return json_bytes(head)[:-1] + b', "results": [' + b", ".join(results) + b"]}"


def entities_result(entities: Sequence[Entity], text: str, *, utf16: bool, check: Callable[[], None]) -> bytes:
    """The result of one text as JSON; `check` is called between pieces."""
    place = utf16_offsets(text) if utf16 else int
    pieces = []
    for first in range(0, len(entities), PIECE):
        check()
        pieces.append(json_bytes(entity_dicts(entities[first : first + PIECE], place))[1:-1])
    return b'{"entities": [' + b", ".join(pieces) + b"]}"


def entity_dicts(entities: Sequence[Entity], place: Callable[[int], int]) -> list[EntityJson]:
    """Entities in the form of the response; `place` converts an offset to the requested unit."""
    return [(entity if place is int else entity.moved(place)).to_dict() for entity in entities]
