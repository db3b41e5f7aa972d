"""Format counts with English nouns for messages and reports."""

from __future__ import annotations


def counted(n: int, thing: str, things: str | None = None) -> str:
    """A count with its noun, such as `1 sentence` or `1,234 sentences`; `things` is the plural, by default with s."""
    return f"{n:,} {thing if n == 1 else things or thing + 's'}"
