"""Spans: how long something takes, written as people say it ("400 steps", "10 epochs", "5%"); and durations."""

from __future__ import annotations

import re

_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(step|epoch|%)s?")


def parse_span(text: str) -> tuple[float, str] | None:
    """(amount, "steps" or "epochs" or "%") of a span; None where the text is none."""
    found = _SPAN.fullmatch(text.strip())
    return None if found is None else (float(found[1]), found[2] if found[2] == "%" else f"{found[2]}s")


def steps_of(span: str, *, n_steps: int, n_epochs: int | None = None) -> int:
    """The number of steps that a span is in a run of `n_steps`.

    Args:
        span: one that `parse_span` reads; "%" is a share of all steps.
        n_epochs: of the run; None where no span is in epochs.
    """
    parsed = parse_span(span)
    assert parsed is not None, span
    amount, unit = parsed
    if unit == "epochs":
        assert n_epochs is not None, span
        return round(amount * n_steps / n_epochs)
    return round(amount if unit == "steps" else amount / 100 * n_steps)


def show_duration(seconds: float) -> str:
    """Such as "45 s", "12.5 min" or "3.2 h"."""
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
