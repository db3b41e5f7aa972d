"""Predict scored spans from lattices: batches that fit into memory, the best tags, and the entity probabilities.

This module does not depend on how emissions are computed: a PredictionModel may use PyTorch or any other library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from cige.lattice.lattice import Lattice
from cige.lexicon.user_word import UNKNOWN_TYPE
from cige.nn.budget import batches_by_budget
from cige.tagging.decoding import found_spans
from cige.tagging.edges import not_entered, trimmed, whole_edges, with_whole_edges
from cige.tagging.prediction_model import FoundSpans, PredictionModel, ScoredSpan
from cige.tagging.selection import Request, Selection, select
from cige.tagging.user_rules import forced_entities, label_of_user_word, with_typed

if TYPE_CHECKING:
    from cige.tagging.pair_grid import PairGridModel

__all__ = ["PredictionModel", "ScoredSpan", "batches_by_size", "decode_spans", "predict_spans"]

MAX_PAIRS = 600_000  # node pairs per batch; their scores and indices take about 150 bytes per pair


def predict_spans(
    model: PredictionModel,
    lattices: Sequence[Lattice],
    selection: Selection | None = None,
    *,
    batch_size: int = 16,
    max_pairs: int = MAX_PAIRS,
) -> list[list[ScoredSpan]]:
    """The entities of each lattice (see `decode_spans`), in order; lattices of similar size are batched together."""
    chosen = select(Request(), model.labels, model.label_facts) if selection is None else selection
    of_lattices: list[list[ScoredSpan]] = [[] for _ in lattices]
    for numbers in batches_by_size(lattices, batch_size=batch_size, max_pairs=max_pairs):
        for k, spans in zip(numbers, _read(model, [lattices[k] for k in numbers], chosen), strict=True):
            of_lattices[k] = spans
    return of_lattices


def _read(model: PredictionModel, batch: list[Lattice], chosen: Selection) -> list[list[ScoredSpan]]:
    """The entities of one batch, decoded by the model's own decoder (see `FoundSpans`), or by `decode_spans` what it
    leaves or if it has none."""
    of_lattices: list[list[ScoredSpan] | None] = [None] * len(batch)
    decoded = model.find_spans(batch, *(() if chosen.is_fine else (chosen.families, chosen.thresholds)))
    for k, of_lattice in enumerate(decoded or ()):
        of_lattices[k] = None if of_lattice is None else _as_reported(of_lattice, batch[k], model, chosen)
    rest = [k for k, spans in enumerate(of_lattices) if spans is None]
    if rest:
        lattices = [batch[k] for k in rest]
        for k, spans in zip(rest, decode_spans(model, model.emissions(lattices), lattices, chosen), strict=True):
            of_lattices[k] = spans
    return [spans for spans in of_lattices if spans is not None]


def _as_reported(decoded: FoundSpans, lattice: Lattice, model: PredictionModel, chosen: Selection) -> list[ScoredSpan]:
    """The entities of a lattice, as `decode_spans` describes them, of the spans that a decoder found in it."""
    if not (decoded.spans or decoded.candidates or lattice.rules):
        return []
    reported, rules = [], lattice.rules
    limits = chosen.max_lengths(model.label_facts.max_lengths)
    score = chosen.score if chosen.calibration is None else chosen.calibration.score
    for start, end, found, probability, *_ in decoded.spans:
        label = label_of_user_word(start, end, lattice, model.labels) if found == UNKNOWN_TYPE else found
        if label is None:
            continue
        name = chosen.reported.get(label) or chosen.name_of(label, model.labels)
        edges = None if name is None else trimmed(lattice.text, start, end)
        if name is not None and edges and edges not in rules.blocked:
            reported.append(ScoredSpan(*edges, name, score(probability)))
    reported = with_whole_edges(lattice.text, reported, closed=not_entered(lattice), max_lengths=limits)
    if rules.typed:
        of_typed = {(word.start, word.end): p for word, p in zip(rules.typed, decoded.typed, strict=True)}
        reported = with_typed(reported, rules.typed, lambda start, end: of_typed[start, end], model.labels, chosen)
    if decoded.candidates is not None:
        # There is no calibration for types that only user words have: their entities are those of the best tags.
        reported = [span for span in reported if span.label not in chosen.families]
        reported += _of_candidates(decoded.candidates, lattice, chosen, limits)
    if chosen.min_score > 0:
        reported = [span for span in reported if span.score >= chosen.min_score]
    if rules.forced:
        reported += forced_entities(lattice, model.labels, chosen)
    if rules.forced or decoded.candidates is not None:
        reported.sort(key=lambda span: (span.start, span.end, span.label))
    return reported


def _of_candidates(
    candidates: Sequence[ScoredSpan], lattice: Lattice, chosen: Selection, limits: Mapping[str, int]
) -> Iterator[ScoredSpan]:
    """The candidates of a recall, with the edges and scores that they are reported with.

    Their edges are moved as those of the best spans are, so that an entity is not missing here because the model found
    it with a mark beside it. Of candidates that are the same then, the most probable one remains.
    """
    probabilities: dict[tuple[int, int, str], float] = {}
    closed = not_entered(lattice)
    for span in candidates:
        edges = trimmed(lattice.text, span.start, span.end)
        if edges is None or edges in lattice.rules.blocked:
            continue
        edges = whole_edges(lattice.text, *edges, closed=closed, longest=limits.get(span.label))
        place = (*edges, span.label)
        probabilities[place] = max(span.score, probabilities.get(place, 0.0))
    for (start, end, label), probability in probabilities.items():
        yield ScoredSpan(start, end, label, chosen.score(probability))


def batches_by_size(
    lattices: Sequence[Lattice], *, batch_size: int = 16, max_pairs: int = MAX_PAIRS
) -> Iterator[list[int]]:
    """Yield batches of indices into `lattices`; each index occurs once."""
    by_size = sorted(range(len(lattices)), key=lambda k: lattices[k].n_nodes)
    sizes = [lattices[k].n_nodes for k in by_size]
    for cut in batches_by_budget(sizes, max_sentences=batch_size, max_pairs=max_pairs):
        yield [by_size[place] for place in cut]


def decode_spans(
    model: PredictionModel,
    emissions: np.ndarray,
    lattices: Sequence[Lattice],
    selection: Selection | None = None,
) -> list[list[ScoredSpan]]:
    """Decode float[B, T, L] emissions into the entities of each lattice, sorted, with their scores.

    No span overlaps a closed stretch of its lattice, is longer than its label allows, or has punctuation at its edges.
    A span of a type that the model was not trained on gets the label of the user word that supports it. The score is
    the probability of exactly this span and label, summed over the labels that are reported as one, and calibrated if
    the model has a calibration. A span that is trimmed keeps its score. Forced stretches are always entities, and
    blocked spans never are (see `cige.lexicon.rules`); nor is anything that reaches beyond one, unless the model finds
    something there without them (`cige.tagging.blocking`). All other tags and probabilities are conditioned on
    this.

    Args:
        selection: which entities are reported; None reports the best tag sequence, which is the default for users.
    """
    chosen = select(Request(), model.labels, model.label_facts) if selection is None else selection
    if emissions.ndim == 4:
        from cige.tagging.pair_grid import decode_grid

        return decode_grid(cast("PairGridModel", model), emissions, lattices, chosen)
    found = found_spans(model, emissions, lattices, chosen)
    return [_as_reported(own, lattice, model, chosen) for own, lattice in zip(found, lattices, strict=True)]
