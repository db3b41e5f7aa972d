"""Spans of training, such as "400 steps", "10 epochs" or "5%", and durations of time."""

from __future__ import annotations

import re

_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(step|epoch|%)s?")


def parse_span(text: str) -> tuple[float, str] | None:
    """The amount and unit ("steps", "epochs" or "%") of a span; None if the text is not a span."""
    match = _SPAN.fullmatch(text.strip())
    return None if match is None else (float(match[1]), match[2] if match[2] == "%" else f"{match[2]}s")


def steps_of(span: str, *, n_steps: int, n_epochs: int | None = None) -> int:
    """Convert a span to a number of steps in a run of `n_steps`.

    Args:
        span: a span that `parse_span` can read; "%" is a share of all steps.
        n_epochs: number of epochs of the run; None if no span is in epochs.
    """
    parsed = parse_span(span)
    assert parsed is not None, span
    amount, unit = parsed
    if unit == "epochs":
        assert n_epochs is not None, span
        return round(amount * n_steps / n_epochs)
    return round(amount if unit == "steps" else amount / 100 * n_steps)


def show_duration(seconds: float) -> str:
    """Format a duration, such as "45 s", "12.5 min" or "3.2 h"."""
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
