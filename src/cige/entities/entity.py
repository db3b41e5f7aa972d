"""Entity: a named entity in a text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entity:
    """One entity of a text.

    Attributes:
        start, end: half-open [start, end) in code points of the string that the user passed.
        label: the entity type.
        text: the text of the entity, `user_text[start:end]`.
        score: the marginal probability, 0..1, that this span has this type.
        forced: whether it is a word that the user added with mode "force"; `score` is 1.0 then.
    """

    start: int
    end: int
    label: str
    text: str
    score: float
    forced: bool = False

    def to_dict(self) -> dict[str, int | str | float]:
        """The fields as a dict of JSON values, in the order of the class; `forced` only if it is true."""
        fields: dict[str, int | str | float] = {  # asdict would copy each value, which takes ten times as long
            "start": self.start,
            "end": self.end,
            "label": self.label,
            "text": self.text,
            "score": self.score,
        }
        return fields | {"forced": True} if self.forced else fields

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.to_dict().items())
        return f"Entity({shown})"
