"""Check what the user gave to a function: texts, and whole numbers."""

from __future__ import annotations

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


def decode_hint(value: object) -> str:
    """The end of a message about something that is not a str: what to do with bytes."""
    return ", so decode it first: text.decode('utf-8')" if isinstance(value, bytes | bytearray) else ""
