"""Sentence: labelled text as it crosses from files to batches."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Span:
    """A labelled stretch of text, half-open [start, end) in code points."""

    start: int
    end: int
    label: str


@dataclass(frozen=True)
class Sentence:
    """A text and its gold spans, sorted and non-overlapping; `line` is where it began in its file (1-based)."""

    text: str
    spans: tuple[Span, ...] = ()
    line: int | None = None
