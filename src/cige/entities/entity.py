"""Entity: a named entity in a text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypedDict


class EntityJson(TypedDict, total=False):
    """An entity as JSON (`Entity.to_dict`); `forced` and `parts` only if they are set."""

    start: int
    end: int
    label: str
    text: str
    score: float
    forced: bool
    parts: list[list[int]]


@dataclass(frozen=True)
class Entity:
    """One entity of a text.

    Attributes:
        start, end: half-open [start, end) in code points of the string that the user passed.
        label: the entity type.
        text: the text of the entity, `user_text[start:end]`, or for a discontinuous entity that of its parts.
        score: the marginal probability, 0..1, that this span has this type.
        forced: whether it is a word that the user added with mode "force"; `score` is 1.0 then.
        parts: the stretches [start, end) of a discontinuous entity, sorted; empty if it has only one. Only models with
            `pair_grid.scores: relations` find such entities.
    """

    start: int
    end: int
    label: str
    text: str
    score: float
    forced: bool = False
    parts: tuple[tuple[int, int], ...] = ()

    def moved(self, place: Callable[[int], int]) -> Entity:
        """The entity with its offsets, also those of its parts, in another unit: `place` converts an offset."""
        parts = tuple((place(start), place(end)) for start, end in self.parts)
        return replace(self, start=place(self.start), end=place(self.end), parts=parts)

    def shown_offsets(self) -> str:
        """Its offsets as tables show them: "3-10", or those of its parts: "3-5, 8-10"."""
        return ", ".join(f"{start}-{end}" for start, end in self.parts or ((self.start, self.end),))

    def to_dict(self) -> EntityJson:
        """The fields as a dict of JSON values, in the order of the class; `forced` and `parts` only if they are set."""
        fields: EntityJson = {  # asdict would copy each value, which takes ten times as long
            "start": self.start,
            "end": self.end,
            "label": self.label,
            "text": self.text,
            "score": self.score,
        }
        if self.forced:
            fields["forced"] = True
        if self.parts:
            fields["parts"] = [list(part) for part in self.parts]
        return fields

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.to_dict().items())
        return f"Entity({shown})"
