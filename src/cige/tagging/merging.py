"""Merge the spans found in each window into the entities of the whole text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from cige.entities.entity import Entity
from cige.tagging.prediction import ScoredSpan
from cige.text.windows import Window


def merge_windows(
    text: str, spans_of_windows: Iterable[tuple[Window, Sequence[ScoredSpan]]], *, overlapping: bool = False
) -> list[Entity]:
    """The entities of a whole text from the spans found in each window, sorted.

    Each window contributes the entities that start in its core. If one of them extends into the next core and overlaps
    an entity found there, the more probable one is kept. Forced entities are always kept, and with `overlapping`, all
    are. Entities overlap if they share a character, so one in the gap of another is kept.
    """
    entities = [
        _entity(text, window.start, span)
        for window, spans in spans_of_windows
        for span in spans
        if window.core_start <= window.start + span.start < window.core_end
    ]
    if overlapping:
        return sorted(entities, key=_place)
    if all(left.end <= right.start for left, right in pairwise(entities)):  # nearly always; all are kept, in this order
        return entities
    kept, taken = [], bytearray(len(text))
    for entity in sorted(entities, key=lambda e: (not e.forced, -e.score, e.start)):
        pieces = entity.parts or ((entity.start, entity.end),)
        if all(taken.find(1, start, end) < 0 for start, end in pieces):
            kept.append(entity)
            for start, end in pieces:
                taken[start:end] = b"\1" * (end - start)
    return sorted(kept, key=_place)


def _place(entity: Entity) -> tuple[int, int, str, tuple[tuple[int, int], ...]]:
    return entity.start, entity.end, entity.label, entity.parts


def _entity(text: str, offset: int, span: ScoredSpan) -> Entity:
    start, end = offset + span.start, offset + span.end
    if not span.parts:
        return Entity(start, end, span.label, text[start:end], span.score, span.forced)
    parts = tuple((offset + a, offset + b) for a, b in span.parts)
    return Entity(start, end, span.label, "".join(text[a:b] for a, b in parts), span.score, span.forced, parts)
