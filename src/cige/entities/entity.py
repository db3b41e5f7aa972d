"""Entity: a named entity in a text."""

from __future__ import annotations

from dataclasses import asdict, dataclass


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
        fields = asdict(self)
        return fields if self.forced else {name: value for name, value in fields.items() if name != "forced"}

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.to_dict().items())
        return f"Entity({shown})"
