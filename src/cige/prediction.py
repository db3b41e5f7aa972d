"""From lattices to scored spans: batches that fit memory, the best tags, and how probable each entity is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from cige.data.batch import batches_by_budget
from cige.data.tags import tags_to_spans
from cige.lattice.lattice import Lattice
from cige.models.model import LatticeModel
from cige.nn.crf import SegmentMarginals

MAX_PAIRS = 600_000  # node pairs of one batch: scores and their index take about 150 bytes a pair


@dataclass(frozen=True)
class ScoredSpan:
    """A span [start, end) of one lattice's text with its label and marginal probability `score`."""

    start: int
    end: int
    label: str
    score: float


@torch.inference_mode()
def predict_spans(
    model: LatticeModel, lattices: Sequence[Lattice], *, batch_size: int = 16, max_pairs: int = MAX_PAIRS
) -> list[list[ScoredSpan]]:
    """The entities of each lattice, in the order given; lattices of like size are read together."""
    by_size = sorted(range(len(lattices)), key=lambda k: lattices[k].n_nodes)
    sizes = [lattices[k].n_nodes for k in by_size]
    found: list[list[ScoredSpan]] = [[] for _ in lattices]
    for places in batches_by_budget(sizes, max_sentences=batch_size, max_pairs=max_pairs):
        chosen = [by_size[place] for place in places]
        batch = model.batch([lattices[k] for k in chosen])
        for k, spans in zip(chosen, decode_spans(model, model.tagger(batch).emissions, batch.n_chars), strict=True):
            found[k] = spans
    return found


def decode_spans(model: LatticeModel, emissions: Tensor, n_chars: Tensor) -> list[list[ScoredSpan]]:
    """Viterbi tags of float[B, T, L] emissions as spans, each with the CRF's marginal probability of just this span."""
    crf, names = model.tagger.crf, model.tagger.tags
    paths = crf.decode(emissions, n_chars)
    spans = [tags_to_spans([names[tag] for tag in path], model.scheme) for path in paths]
    if not any(spans):
        return [[] for _ in spans]
    marginals = crf.marginals(emissions, n_chars)
    return [
        [
            ScoredSpan(
                s.start, s.end, s.label, _probability(marginals, row, s.start, path[s.start : s.end], len(path), model)
            )
            for s in spans[row]
        ]
        for row, path in enumerate(paths)
    ]


def _probability(
    marginals: SegmentMarginals, row: int, start: int, tags: list[int], n_chars: int, model: LatticeModel
) -> float:
    probability = marginals.probability(row, start, tags)
    if model.scheme == "BIO" and start + len(tags) < n_chars:  # without a closing tag, longer entities share the prefix
        label = model.tagger.tags[tags[-1]].partition("-")[2]
        longer = marginals.probability(row, start, [*tags, model.tagger.tags.index(f"I-{label}")])
        probability = max(0.0, probability - longer)
    return probability
