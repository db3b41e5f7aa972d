"""Ranges of settings, which are declared with the field that they check."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import Field, field, fields
from typing import Any

from cige.errors import RecipeError
from cige.recipes.spans import parse_span

_CHECKS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "min": (lambda value, limit: value >= limit, "at least {}"),
    "above": (lambda value, limit: value > limit, "more than {}"),
    "max": (lambda value, limit: value <= limit, "at most {}"),
    "below": (lambda value, limit: value < limit, "less than {}"),
    "span": (lambda value, units: (parse_span(value) or ("", ""))[1] in units, "a number with its unit, one of {}"),
}


class OutOfRange(RecipeError):
    """A setting has an invalid value; `name` is the name of its field and `problem` describes what is wrong."""

    def __init__(self, name: str, problem: str):
        super().__init__(f"{name} {problem}")
        self.name, self.problem = name, problem


def within(default: Any, **limits: Any) -> Any:
    """A dataclass field with limits: `min`, `above`, `max`, `below` (numbers) or `span` (the allowed units)."""
    return field(default=default, metadata=limits)


def check_ranges(settings: Any) -> None:
    """Check every field of a dataclass; raises OutOfRange.

    None is within any limits. The limits of a field that declares none depend on its name: a `*dropout_prob` is at
    least 0 and less than 1, any other `*_prob` is between 0 and 1, and an integer is at least 1 if its name is `n_*` or
    `*width`, and otherwise at least 0.
    """
    for one in fields(settings):
        value = getattr(settings, one.name)
        for key, limit in _limits(one, value).items():
            holds, expected = _CHECKS[key]
            if not all(holds(part, limit) for part in (value if isinstance(value, tuple) else (value,))):
                shown = ", ".join(limit) if key == "span" else limit
                raise OutOfRange(one.name, f"is {value!r}, expected {expected.format(shown)}")


def _limits(one: Field[Any], value: Any) -> Mapping[str, Any]:
    if value is None:
        return {}
    if one.metadata:
        return one.metadata
    if type(value) not in (int, float):
        return {}
    if one.name.endswith("_prob"):
        return {"min": 0, "below": 1} if one.name.endswith("dropout_prob") else {"min": 0, "max": 1}
    is_count = one.name.startswith("n_") or one.name.endswith("width")
    return {"min": 1 if is_count else 0} if type(value) is int else {}
