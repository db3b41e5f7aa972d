"""The decoder in NumPy: emissions to the spans of the best tags, or all above thresholds, with their probabilities.

The decoder of runtime.native_model is the same in C; tests/runtime compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import numpy as np

from cige.data.sentence import Span
from cige.data.tags import split_tag
from cige.lattice.lattice import Lattice
from cige.nn.crf_numpy import NumpyCRF
from cige.tagging.best_spans import best_spans, close
from cige.tagging.blocking import BlockingCRF, cut_edges, edges_to_cut, without_blocked
from cige.tagging.candidates import candidate_spans, span_probability
from cige.tagging.prediction_model import FoundSpans, PredictionModel, ScoredSpan
from cige.tagging.selection import Selection
from cige.tagging.user_rules import with_forced_spans, without_forced, without_unknown_type


def found_spans(
    model: PredictionModel, emissions: np.ndarray, lattices: Sequence[Lattice], chosen: Selection
) -> list[FoundSpans]:
    """What is found in each lattice, given float[B, T, L] emissions; `chosen` says which labels are reported as one."""
    emissions = close(emissions, lattices, model.tags)
    emissions = without_unknown_type(emissions, model.tags, model.labels, lattices)
    emissions = with_forced_spans(emissions, lattices, tags=model.tags, scheme=model.scheme, labels=model.labels)
    emissions = _with_blocked_edges(model, emissions, lattices, chosen)
    found = [FoundSpans(())] * len(lattices)
    for crf, rows in _crfs(model, lattices):
        # Usually these are all rows, and no copy is needed.
        of_rows = emissions if len(rows) == len(lattices) else emissions[rows]
        own = _read(model, crf, of_rows, [lattices[row] for row in rows], chosen)
        for row, spans in zip(rows, own, strict=True):
            found[row] = spans
    return found


def _with_blocked_edges(
    model: PredictionModel, emissions: np.ndarray, lattices: Sequence[Lattice], chosen: Selection
) -> np.ndarray:
    """float[B, T, L]: emissions with which no new entity reaches beyond a blocked span; see `blocking`."""
    rows = [row for row, lattice in enumerate(lattices) if lattice.rules.blocked]
    if not rows:
        return emissions
    free = best_spans(
        model.crf,
        emissions[rows],
        [without_blocked(lattices[row]) for row in rows],
        tags=model.tags,
        scheme=model.scheme,
        max_lengths=chosen.max_lengths(model.label_facts.max_lengths),
    )
    emissions = emissions.copy()
    for row, spans in zip(rows, free, strict=True):
        cut_edges(emissions[row], edges_to_cut(lattices[row], spans), tags=model.tags, scheme=model.scheme)
    return emissions


def _crfs(model: PredictionModel, lattices: Sequence[Lattice]) -> Iterator[tuple[NumpyCRF, list[int]]]:
    """(CRF, rows that it decodes): the trained CRF, and a separate CRF for each row with blocked spans."""
    rows = [row for row, lattice in enumerate(lattices) if not lattice.rules.blocked]
    if rows:
        yield model.crf, rows
    for row, lattice in enumerate(lattices):
        if lattice.rules.blocked:
            blocked = lattice.rules.blocked
            yield BlockingCRF(model.crf, tags=model.tags, scheme=model.scheme, blocked=blocked), [row]


def _read(
    model: PredictionModel, crf: NumpyCRF, emissions: np.ndarray, lattices: Sequence[Lattice], chosen: Selection
) -> list[FoundSpans]:
    """What a CRF finds in each lattice."""
    limits, finds_all = chosen.max_lengths(model.label_facts.max_lengths), chosen.thresholds is not None
    decoded = best_spans(crf, emissions, lattices, tags=model.tags, scheme=model.scheme, max_lengths=limits)
    hidden = {*model.labels} - chosen.reported.keys()
    best = [[span for span in spans if span.label not in hidden] for spans in decoded]
    found = [FoundSpans(())] * len(lattices)
    rows = [row for row, spans in enumerate(best) if spans or lattices[row].rules.typed or finds_all]
    if not rows:  # the others need no marginals
        return found
    marginals = crf.marginals(emissions[rows], [lattices[row].n_chars for row in rows])
    tag_ids = {tag: number for number, tag in enumerate(model.tags)}
    types = sorted({split_tag(tag, model.scheme)[1] for tag in model.tags} - {""})
    for place, row in enumerate(rows):
        lattice, n_chars = lattices[row], lattices[row].n_chars
        of_span = partial(span_probability, marginals, place, n_chars=n_chars, tag_ids=tag_ids, scheme=model.scheme)
        scored = []
        for span in best[row]:
            family = chosen.families[chosen.reported[span.label]] if span.label in chosen.reported else [span.label]
            scored.append(ScoredSpan(span.start, span.end, span.label, _of_one(family, span.start, span.end, of_span)))
        candidates = [
            ScoredSpan(start, end, name, probability)
            for name, threshold in (chosen.thresholds or {}).items()
            for start, end, probability in candidate_spans(
                marginals,
                place,
                n_chars,
                chosen.families[name],
                threshold=threshold,
                tags=model.tags,
                scheme=model.scheme,
                max_lengths=limits,
            )
        ]
        found[row] = FoundSpans(
            scored,
            [_of_one(types, word.start, word.end, of_span) for word in lattice.rules.typed],
            without_forced(candidates, lattice) if finds_all else None,
        )
    return found


def _of_one(labels: Iterable[str], start: int, end: int, probability: Callable[[Span], float]) -> float:
    """The probability that [start, end) is an entity of one of these labels."""
    return min(1.0, sum(probability(Span(start, end, label)) for label in labels))
