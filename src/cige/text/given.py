"""Check that a text that the user gave is a string."""

from __future__ import annotations


def check_text(text: object) -> None:
    """Raise a TypeError that says what was given if `text` is not a str."""
    if not isinstance(text, str):
        hint = "; give one text per call" if isinstance(text, list | tuple) else decode_hint(text)
        raise TypeError(f"given {type(text).__name__}; expected a str{hint}")


def decode_hint(value: object) -> str:
    """The end of a message about something that is not a str: what to do with bytes."""
    return ", so decode it first: text.decode('utf-8')" if isinstance(value, bytes | bytearray) else ""
