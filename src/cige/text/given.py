"""Check what the user gave to a function: texts, and whole numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isnan
from numbers import Integral


def check_text(text: object) -> None:
    """Raise a TypeError that says what was given if `text` is not a str."""
    if not isinstance(text, str):
        hint = "; give one text per call" if isinstance(text, list | tuple) else decode_hint(text)
        raise TypeError(f"given {type(text).__name__}; expected a str{hint}")


def whole_number(name: str, value: object, *, least: int) -> int:
    """The value of an option; NumPy's integers are taken too. Raises a ValueError if it is below `least` or no whole
    number."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"given {name}={value!r}; expected a whole number, {least} or more")
    return int(value)


def check_texts(texts: object) -> None:
    """Raise a TypeError that says what was given if `texts` is no collection or stream of texts."""
    if isinstance(texts, str | bytes):
        raise TypeError(f"given one {type(texts).__name__}; expected an iterable of str, such as [text]")
    if not may_hold_texts(texts):
        example = "table['text']" if is_table(texts) else "[text]"
        raise TypeError(f"given {type(texts).__name__}; expected an iterable of str, such as {example}")


def may_hold_texts(value: object) -> bool:
    """Whether the items of this may be texts; those of a DataFrame are the names of its columns, and those of a dict
    its keys."""
    return isinstance(value, Iterable) and not isinstance(value, Mapping) and not is_table(value)


def is_table(value: object) -> bool:
    """Whether this is a DataFrame of pandas or of a library with the same interface."""
    return hasattr(value, "to_dict") and hasattr(value, "columns")


def decode_hint(value: object) -> str:
    """The end of a message about something that is not a str: what to do with bytes."""
    return ", so decode it first: text.decode('utf-8')" if isinstance(value, bytes | bytearray) else ""


def item_hint(value: object) -> str:
    """As `decode_hint`, for an item of a list or a column, which may also be a missing value."""
    is_missing = value is None or (isinstance(value, float) and isnan(value)) or type(value).__name__ == "NAType"
    return ", so fill or drop missing values first" if is_missing else decode_hint(value)
