"""Counts in word lists: whole numbers that an int64 holds."""

from __future__ import annotations

MAX_DIGITS = 18
MAX_NUMBER = 10**MAX_DIGITS - 1


def whole_number(field: bytes | str) -> int | None:
    """The whole number in a field; None if it is not a number or has more than 18 digits."""
    is_number = field.isdigit() if isinstance(field, bytes) else field.isdecimal()
    return int(field) if is_number and len(field) <= MAX_DIGITS else None
