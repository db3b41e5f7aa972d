"""Check the settings of a network that were read from a folder: their types, and that no size is absurd."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

MAX_WIDTH = 1 << 16  # of any layer; products of two widths fit into the integers of C
MAX_LAYERS = 64
MAX_NUMBER = 1 << 20  # of any other whole number, positive or negative


def check_settings(settings: Any) -> None:
    """Check every field of a dataclass of settings; a setting that a recipe may have is accepted. Raises a ValueError
    if a value has another type than its field, is not one of its choices, or is too large."""
    hints = get_type_hints(type(settings))
    for one in fields(settings):
        name, value = one.name, getattr(settings, one.name)
        if not fits(value, hints[name]):
            raise ValueError(f"config.{name} is {_shown(value)}; expected {_expected(hints[name])}")
        if type(value) is int:
            _check_number(name, value)
        elif is_dataclass(value):
            check_settings(value)


def _check_number(name: str, value: int) -> None:
    is_count = name.startswith("n_") or name.endswith("width")
    low, high = (1, MAX_LAYERS if name == "n_layers" else MAX_WIDTH) if is_count else (-MAX_NUMBER, MAX_NUMBER)
    if not low <= value <= high:
        raise ValueError(f"config.{name} is {_shown(value)}; expected a whole number from {low} to {high}")


def fits(value: Any, hint: Any) -> bool:
    """Whether a value from a file has the type of a field: a whole number fits a float, and true fits no int."""
    kind, arguments = get_origin(hint), get_args(hint)
    if kind in (Union, UnionType):
        return any(fits(value, one) for one in arguments)
    if kind is Literal:
        return any(type(value) is type(one) and value == one for one in arguments)
    if kind in (tuple, list):
        return isinstance(value, kind) and all(fits(item, arguments[0]) for item in value)
    if kind is dict:
        return isinstance(value, dict) and all(
            fits(k, arguments[0]) and fits(v, arguments[1]) for k, v in value.items()
        )
    if hint is float:
        return type(value) in (int, float) and abs(value) <= MAX_NUMBER and math.isfinite(value)
    return hint in (Any, object) or type(value) is hint


def _expected(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, get_args(hint)))
    names = {int: "a whole number", float: "a number", str: "a string", bool: "true or false", type(None): "null"}
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(map(_expected, get_args(hint)))
    return names.get(hint, "a list" if get_origin(hint) is tuple else str(hint))


def _shown(value: Any) -> str:
    text = repr(value) if not isinstance(value, int) or abs(value) < 1 << 64 else "a number of many digits"
    return text if len(text) <= 60 else f"{text[:57]}..."
