"""Sentence: a text and its labelled spans."""

from __future__ import annotations

from dataclasses import dataclass

EITHER = "|"
"""The separator of the possible labels of a span: `ORG|LOC`."""
OPEN = "?"
"""The label of a stretch that was not annotated; every prediction for it counts as correct."""


@dataclass(frozen=True, order=True)
class Span:
    """A labelled stretch of text, half-open [start, end) in code points.

    In training data, `label` may be OPEN, or several labels joined by EITHER.
    """

    start: int
    end: int
    label: str


@dataclass(frozen=True)
class Sentence:
    """A text and its gold spans, sorted and non-overlapping; `line` is its first line in its file, from 1."""

    text: str
    spans: tuple[Span, ...] = ()
    line: int | None = None
