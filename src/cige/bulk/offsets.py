"""Offsets in UTF-16 code units, for the JVM and JavaScript."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

from cige.entities.entity import Entity

CODE_POINTS, UTF_16 = "code-points", "utf-16"
OFFSETS = (CODE_POINTS, UTF_16)


def in_utf_16(text: str, entities: Sequence[Entity]) -> list[Entity]:
    """The same entities with `start` and `end` in UTF-16 code units of `text`; their `text` does not change."""
    pairs = [k for k, character in enumerate(text) if character > "\uffff"] if entities and not text.isascii() else []
    if not pairs:
        return list(entities)
    return [
        replace(e, start=e.start + bisect_left(pairs, e.start), end=e.end + bisect_left(pairs, e.end)) for e in entities
    ]
