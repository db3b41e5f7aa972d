"""Format counts with English nouns for messages and reports."""

from __future__ import annotations


def counted(n: int, thing: str, things: str | None = None) -> str:
    """Format a count with its noun, for example `1 sentence` or `1,234 sentences`.

    Args:
        thing: the singular of the noun.
        things: the plural; default: `thing` with an s.
    """
    return f"{n:,} {thing if n == 1 else things or thing + 's'}"
