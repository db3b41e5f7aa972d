"""Entity: what cige finds in a text."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Entity:
    """One entity of a text.

    `start`, `end`: half-open [start, end) in code points of the string that the user passed.
    `label`: its type, as the model names it.
    `text`: the surface, always `user_text[start:end]`.
    `score`: the marginal probability that this very span has this type, in [0, 1].
    """

    start: int
    end: int
    label: str
    text: str
    score: float

    def to_dict(self) -> dict[str, int | str | float]:
        """The five fields as a dict that JSON can hold, in the order of the class."""
        return asdict(self)
