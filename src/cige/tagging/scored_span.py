"""ScoredSpan: an entity of a lattice with its score."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ScoredSpan:
    """A span [start, end) of a lattice's text with its reported label and score, 0..1.

    A `forced` span has score 1.0 and may extend beyond the end of the text.
    """

    start: int
    end: int
    label: str
    score: float
    forced: bool = False
