"""ScoredSpan: an entity of a lattice with its score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ScoredSpan:
    """A span [start, end) of a lattice's text with its reported label and score, 0..1.

    A `forced` span has score 1.0 and may extend beyond the end of the text. A discontinuous entity has its `parts`.
    """

    start: int
    end: int
    label: str
    score: float
    forced: bool = False
    parts: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class FoundSpans:
    """The spans that a model's own decoder found in a lattice, before they are reported.

    Attributes:
        spans: the spans of the best tags, with labels of the model and probabilities, or all above the thresholds.
            None overlaps a forced stretch.
        typed: for each typed stretch of the lattice's rules, the probability that it is an entity of any type.
    """

    spans: Sequence[ScoredSpan]
    typed: Sequence[float] = ()
