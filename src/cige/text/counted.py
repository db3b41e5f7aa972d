"""counted: a number of things as reports say it in English."""

from __future__ import annotations


def counted(n: int, thing: str, things: str | None = None) -> str:
    """`1 sentence`, `1,234 sentences`; `things` is the plural where it is not `thing` with an s."""
    return f"{n:,} {thing if n == 1 else things or thing + 's'}"
