"""From lattices to scored spans: batches that fit memory, the best tags, and how probable each entity is.

Nothing here knows how emissions are computed: a PredictionModel may run on PyTorch or on anything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from cige.data.tags import tags_to_spans
from cige.lattice.lattice import Lattice
from cige.lexicon.lexicon import Lexicon
from cige.nn.budget import batches_by_budget
from cige.nn.crf_numpy import NumpyCRF, SegmentMarginals

MAX_PAIRS = 600_000  # node pairs of one batch: scores and their index take about 150 bytes a pair


class PredictionModel(Protocol):
    """What prediction needs of a model.

    Attributes:
        lexicon: the words of its lattices; users add to it.
        labels: entity labels, sorted.
        scheme: tag scheme of `tags`, the L tag names.
        crf: scores of tag sequences.
    """

    lexicon: Lexicon
    labels: list[str]
    scheme: str

    @property
    def tags(self) -> list[str]: ...

    @property
    def crf(self) -> NumpyCRF: ...

    def emissions(self, lattices: Sequence[Lattice]) -> np.ndarray:
        """float32[B, T, L] of some lattices, read as one batch; T is that of the longest, at least 1."""
        ...

    def read_words(self, lattices: Sequence[Lattice]) -> tuple[np.ndarray, np.ndarray]:
        """Emissions, and float32[B, T, W]: how much of what character t read came from word w, 0..1."""
        ...

    def save(self, folder: Path | str) -> None:
        """Write the model folder, the user's words included; it appears whole or not at all."""
        ...


@dataclass(frozen=True)
class ScoredSpan:
    """A span [start, end) of one lattice's text with its label and marginal probability `score`."""

    start: int
    end: int
    label: str
    score: float


def predict_spans(
    model: PredictionModel, lattices: Sequence[Lattice], *, batch_size: int = 16, max_pairs: int = MAX_PAIRS
) -> list[list[ScoredSpan]]:
    """The entities of each lattice, in the order given; lattices of like size are read together."""
    found: list[list[ScoredSpan]] = [[] for _ in lattices]
    for chosen in batches_of_like_size(lattices, batch_size=batch_size, max_pairs=max_pairs):
        batch = [lattices[k] for k in chosen]
        for k, spans in zip(chosen, decode_spans(model, model.emissions(batch), batch), strict=True):
            found[k] = spans
    return found


def batches_of_like_size(
    lattices: Sequence[Lattice], *, batch_size: int = 16, max_pairs: int = MAX_PAIRS
) -> Iterator[list[int]]:
    """Places in `lattices`, a batch at a time, each place once."""
    by_size = sorted(range(len(lattices)), key=lambda k: lattices[k].n_nodes)
    sizes = [lattices[k].n_nodes for k in by_size]
    for cut in batches_by_budget(sizes, max_sentences=batch_size, max_pairs=max_pairs):
        yield [by_size[place] for place in cut]


def decode_spans(model: PredictionModel, emissions: np.ndarray, lattices: Sequence[Lattice]) -> list[list[ScoredSpan]]:
    """Viterbi tags of float[B, T, L] emissions as spans, each with the CRF's marginal probability of just this span."""
    crf, names = model.crf, model.tags
    n_chars = [lattice.n_chars for lattice in lattices]
    paths = crf.decode(emissions, n_chars)
    found = [tags_to_spans([names[tag] for tag in path], model.scheme) for path in paths]
    scored: list[list[ScoredSpan]] = [[] for _ in found]
    rows = [row for row, spans in enumerate(found) if spans]  # the others need no marginals
    if not rows:
        return scored
    marginals = crf.marginals(emissions[rows], [n_chars[row] for row in rows])
    for place, row in enumerate(rows):
        for s in found[row]:
            score = _probability(marginals, place, s.start, paths[row][s.start : s.end], n_chars[row], model)
            scored[row].append(ScoredSpan(s.start, s.end, s.label, score))
    return scored


def _probability(
    marginals: SegmentMarginals, row: int, start: int, tags: list[int], n_chars: int, model: PredictionModel
) -> float:
    probability = marginals.probability(row, start, tags)
    if model.scheme == "BIO" and start + len(tags) < n_chars:  # without a closing tag, longer entities share the prefix
        label = model.tags[tags[-1]].partition("-")[2]
        longer = marginals.probability(row, start, [*tags, model.tags.index(f"I-{label}")])
        probability = max(0.0, probability - longer)
    return probability
