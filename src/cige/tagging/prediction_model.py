"""PredictionModel: what prediction requires of a model, whatever computes it, and the spans that it returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from cige.entities.label_facts import LabelFacts
from cige.lattice.lattice import Lattice
from cige.lexicon.lexicon import Lexicon
from cige.nn.crf_numpy import NumpyCRF


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


class PredictionModel(Protocol):
    """The interface that prediction requires of a model.

    Attributes:
        lexicon: the words of its lattices, to which users add words.
        labels: entity labels, sorted.
        scheme: tag scheme of `tags`, the L tag names.
    """

    lexicon: Lexicon
    labels: list[str]
    scheme: str
    label_facts: LabelFacts

    @property
    def tags(self) -> list[str]: ...

    @property
    def crf(self) -> NumpyCRF: ...

    def emissions(self, lattices: Sequence[Lattice]) -> np.ndarray:
        """float32[B, T, L] of a batch of lattices; T is the length of the longest, at least 1.

        A model with a pair grid, which has no CRF, returns scores of spans, float32[B, T, M, K].
        """

    def read_words(self, lattices: Sequence[Lattice]) -> tuple[np.ndarray, np.ndarray]:
        """Emissions, and float32[B, T, W]: the share, 0..1, of the attention of character t to word w."""

    def find_spans(
        self,
        lattices: Sequence[Lattice],
        families: Mapping[str, Sequence[str]] | None = None,
        thresholds: Mapping[str, float] | None = None,
    ) -> Sequence[FoundSpans | None] | None:
        """The spans that the model's own decoder finds, None for each lattice that it leaves to `tagging.decoding`.

        None if the model has no decoder of its own (see `cige.runtime.native_model`).
        """

    def save(self, folder: Path | str) -> None:
        """Write the model folder, including the user's words; it is written completely or not at all."""
