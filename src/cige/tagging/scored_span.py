"""ScoredSpan: an entity of a lattice with its score.

There are a few of these per sentence, and named tuples are made in a third of the time of frozen dataclasses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class ScoredSpan(NamedTuple):
    """A span [start, end) of a lattice's text with its reported label and score, 0..1.

    A `forced` span has score 1.0 and may extend beyond the end of the text. A discontinuous entity has its `parts`.
    """

    start: int
    end: int
    label: str
    score: float
    forced: bool = False
    parts: tuple[tuple[int, int], ...] = ()


class FoundSpans(NamedTuple):
    """The spans that a decoder found in a lattice, before they are reported; none overlaps a forced stretch.

    Attributes:
        spans: the spans of the best tags, with labels of the model and probabilities. The compiled decoder leaves them
            out if it finds candidates, of which it knows no label that the model lacks.
        typed: for each typed stretch of the lattice's rules, the probability that it is an entity of any type.
        candidates: all spans that reach the threshold of their reported label, with it; None if only the best tags are
            asked for.
    """

    spans: Sequence[ScoredSpan]
    typed: Sequence[float] = ()
    candidates: Sequence[ScoredSpan] | None = None
