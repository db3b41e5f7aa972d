"""Counts in word lists: whole numbers that an int64 holds."""

from __future__ import annotations

import re

MAX_DIGITS = 18
MAX_NUMBER = 10**MAX_DIGITS - 1
_NUMBER = re.compile(r"[+-]?(\d[\d,]*\.?\d*|\.\d+)([eE][+-]?\d+)?")
_WHOLE = re.compile(r"(\d+|\d{1,3}(?:,\d{3})+)(?:\.0*)?")


def whole_number(field: bytes | str) -> int | None:
    """The whole number in a field; None if it is not a number or has more than 18 digits."""
    is_number = field.isdigit() if isinstance(field, bytes) else field.isdecimal()
    return int(field) if is_number and len(field) <= MAX_DIGITS else None


def count_in(field: bytes | str) -> int | None:
    """Like `whole_number`, also as programs write tables: `12.0` (pandas, in a column with empty cells) and `1,000`."""
    number = whole_number(field)
    if number is not None or len(field) <= 2:
        return number
    match = _WHOLE.fullmatch(field.decode("latin-1") if isinstance(field, bytes) else field)
    return None if match is None else whole_number(match[1].replace(",", ""))


def is_number(field: str) -> bool:
    """Whether a field is a number of any form, such as `12`, `3.5`, `1,000`, `-1` or `1e5`."""
    return _NUMBER.fullmatch(field) is not None
