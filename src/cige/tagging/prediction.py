"""Predict scored spans from lattices: batches that fit into memory, the best tags, and the entity probabilities.

This module does not depend on how emissions are computed: a PredictionModel may use PyTorch or any other library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol, cast

import numpy as np

from cige.data.sentence import Span
from cige.data.tags import split_tag
from cige.entities.label_facts import LabelFacts
from cige.lattice.lattice import Lattice
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.user_word import UNKNOWN_TYPE
from cige.nn.budget import batches_by_budget
from cige.nn.crf_numpy import NumpyCRF, SegmentMarginals
from cige.tagging.best_spans import best_spans, close
from cige.tagging.blocked_edges import cut_edges, edges_to_cut, without_blocked
from cige.tagging.blocking import BlockingCRF
from cige.tagging.candidates import candidate_spans
from cige.tagging.edges import trimmed
from cige.tagging.forcing import forced_starts, with_forced_spans, without_forced
from cige.tagging.pair_grid import PairGridModel, decode_grid
from cige.tagging.scored_span import FoundSpans, ScoredSpan
from cige.tagging.selection import Request, Selection, select
from cige.tagging.span_probability import span_probability
from cige.tagging.typing import with_typed
from cige.tagging.unknown_types import named_by_user_words, without_unknown_type
from cige.tagging.whole_words import with_whole_words

MAX_PAIRS = 600_000  # node pairs per batch; their scores and indices take about 150 bytes per pair


class PredictionModel(Protocol):
    """The interface that prediction requires of a model.

    Attributes:
        lexicon: the words of its lattices, to which users add words.
        labels: entity labels, sorted.
        scheme: tag scheme of `tags`, the L tag names.
        crf: the CRF that scores tag sequences.
        label_facts: facts about the labels.
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
        ...

    def read_words(self, lattices: Sequence[Lattice]) -> tuple[np.ndarray, np.ndarray]:
        """Emissions, and float32[B, T, W]: the share, 0..1, of the attention of character t to word w."""
        ...

    def find_spans(
        self,
        lattices: Sequence[Lattice],
        families: Mapping[str, Sequence[str]] | None = None,
        thresholds: Mapping[str, float] | None = None,
    ) -> Sequence[FoundSpans | None] | None:
        """The spans that the model's own decoder finds, None for each lattice that it leaves to `decode_spans`.

        None if the model has no decoder of its own (see `cige.runtime.native_model`).
        """
        ...

    def save(self, folder: Path | str) -> None:
        """Write the model folder, including the user's words; it is written completely or not at all."""
        ...


def predict_spans(
    model: PredictionModel,
    lattices: Sequence[Lattice],
    selection: Selection | None = None,
    *,
    batch_size: int = 16,
    max_pairs: int = MAX_PAIRS,
) -> list[list[ScoredSpan]]:
    """The entities of each lattice (see `decode_spans`), in order; lattices of similar size are batched together."""
    of_lattices: list[list[ScoredSpan]] = [[] for _ in lattices]
    for chosen in batches_by_size(lattices, batch_size=batch_size, max_pairs=max_pairs):
        for k, spans in zip(chosen, _read(model, [lattices[k] for k in chosen], selection), strict=True):
            of_lattices[k] = spans
    return of_lattices


def _read(model: PredictionModel, batch: list[Lattice], selection: Selection | None) -> list[list[ScoredSpan]]:
    """The entities of one batch, decoded by the model's own decoder (see `FoundSpans`), or by `decode_spans` what it
    leaves or if it has none."""
    chosen = select(Request(), model.labels, model.label_facts) if selection is None else selection
    of_lattices: list[list[ScoredSpan] | None] = [None] * len(batch)
    is_fine = chosen.thresholds is None and all(len(x) == 1 for x in chosen.families.values())
    decoded = model.find_spans(batch, *(() if is_fine else (chosen.families, chosen.thresholds)))
    for k, of_lattice in enumerate(decoded or ()):
        of_lattices[k] = None if of_lattice is None else _as_reported(of_lattice, batch[k], model, chosen)
    rest = [k for k, spans in enumerate(of_lattices) if spans is None]
    if rest:
        lattices = [batch[k] for k in rest]
        for k, spans in zip(rest, decode_spans(model, model.emissions(lattices), lattices, chosen), strict=True):
            of_lattices[k] = spans
    return [spans for spans in of_lattices if spans is not None]


def _as_reported(decoded: FoundSpans, lattice: Lattice, model: PredictionModel, chosen: Selection) -> list[ScoredSpan]:
    """Report the spans that a model's own decoder found like `decode_spans`: the best ones, or all above the
    thresholds."""
    reported, rules, is_best = [], lattice.rules, chosen.thresholds is None
    for span in decoded.spans:
        label: str | None = span.label
        if label == UNKNOWN_TYPE:
            named = named_by_user_words([Span(span.start, span.end, UNKNOWN_TYPE)], lattice, model.labels)
            label = named[0].label if named else None
        name = chosen.name_of(label, model.labels) if is_best and label is not None else label
        edges = None if name is None else trimmed(lattice.text, span.start, span.end)
        if name is None or not edges:
            continue
        if edges != (span.start, span.end) and (not is_best or edges in rules.blocked):
            continue
        reported.append(ScoredSpan(*edges, name, chosen.score(span.score)))
    if is_best and not rules:
        limits = chosen.max_lengths(model.label_facts.max_lengths)
        reported = with_whole_words(lattice.text, reported, closed=lattice.closed, max_lengths=limits)
    if rules.typed:
        of_typed = {(word.start, word.end): p for word, p in zip(rules.typed, decoded.typed, strict=True)}
        reported = with_typed(reported, rules.typed, lambda start, end: of_typed[start, end], model.labels, chosen)
    reported = [span for span in reported if span.score >= chosen.min_score]
    if rules.forced:
        reported += _forced(lattice, model, chosen)
    if rules.forced or not is_best:
        reported.sort(key=lambda span: (span.start, span.end, span.label))
    return reported


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
    something there without them (`cige.tagging.blocked_edges`). All other tags and probabilities are conditioned on
    this.

    Args:
        selection: which entities are reported; None reports the best tag sequence, which is the default for users.
    """
    chosen = select(Request(), model.labels, model.label_facts) if selection is None else selection
    if emissions.ndim == 4:
        return decode_grid(cast(PairGridModel, model), emissions, lattices, chosen)
    emissions = close(emissions, lattices, model.tags)
    emissions = without_unknown_type(emissions, model.tags, model.labels, lattices)
    emissions = with_forced_spans(emissions, lattices, tags=model.tags, scheme=model.scheme, labels=model.labels)
    emissions = _with_blocked_edges(model, emissions, lattices, chosen)
    read = _best if chosen.thresholds is None else _all_above
    of_lattices: list[list[ScoredSpan]] = [[] for _ in lattices]
    for crf, rows in _crfs(model, lattices):
        # Usually these are all rows, and no copy is needed.
        of_rows = emissions if len(rows) == len(lattices) else emissions[rows]
        for row, spans in zip(rows, read(model, crf, of_rows, [lattices[row] for row in rows], chosen), strict=True):
            spans = [span for span in spans if span.score >= chosen.min_score]
            spans += _forced(lattices[row], model, chosen)
            of_lattices[row] = sorted(spans, key=lambda span: (span.start, span.end, span.label))
    return of_lattices


def _with_blocked_edges(
    model: PredictionModel, emissions: np.ndarray, lattices: Sequence[Lattice], chosen: Selection
) -> np.ndarray:
    """float[B, T, L]: emissions with which no new entity reaches beyond a blocked span; see `blocked_edges`."""
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


def _forced(lattice: Lattice, model: PredictionModel, chosen: Selection) -> list[ScoredSpan]:
    """The forced stretches with the user's labels, unless other labels were requested."""
    spans = []
    for span in forced_starts(lattice):
        name = chosen.name_of_word(span.label, model.labels)
        if name is not None:
            spans.append(ScoredSpan(span.start, span.end, name, 1.0, forced=True))
    return spans


def _best(
    model: PredictionModel, crf: NumpyCRF, emissions: np.ndarray, lattices: Sequence[Lattice], chosen: Selection
) -> list[list[ScoredSpan]]:
    """The reported spans of the best tags (Viterbi) without forced ones."""
    names, scheme = model.tags, model.scheme
    n_chars = [lattice.n_chars for lattice in lattices]
    limits = chosen.max_lengths(model.label_facts.max_lengths)
    best = best_spans(crf, emissions, lattices, tags=names, scheme=scheme, max_lengths=limits)
    named_spans = [
        [
            (span, named)
            for span in spans
            for named in named_by_user_words([span], lattice, model.labels)
            if chosen.name_of(named.label, model.labels) is not None
        ]
        for spans, lattice in zip(best, lattices, strict=True)
    ]
    scored: list[list[ScoredSpan]] = [[] for _ in named_spans]
    is_needed = [bool(spans or lattice.rules.typed) for spans, lattice in zip(named_spans, lattices, strict=True)]
    rows = [row for row, needed in enumerate(is_needed) if needed]  # the others need no marginals
    if not rows:
        return scored
    tag_ids = {tag: number for number, tag in enumerate(names)}
    marginals = crf.marginals(emissions[rows], [n_chars[row] for row in rows])
    for place, row in enumerate(rows):
        for span, named in named_spans[row]:
            name = str(chosen.name_of(named.label, model.labels))
            edges = trimmed(lattices[row].text, span.start, span.end)
            if edges and edges not in lattices[row].rules.blocked:
                probability = sum(
                    span_probability(
                        marginals,
                        place,
                        Span(span.start, span.end, label),
                        n_chars[row],
                        tag_ids=tag_ids,
                        scheme=scheme,
                    )
                    for label in (chosen.families[name] if span.label in chosen.reported else [span.label])
                )
                scored[row].append(ScoredSpan(*edges, name, chosen.score(min(1.0, probability))))
        if not lattices[row].rules:
            text, closed = lattices[row].text, lattices[row].closed
            scored[row] = with_whole_words(text, scored[row], closed=closed, max_lengths=limits)
        if lattices[row].rules.typed:
            of_span = partial(_probability_of_any, marginals, place, n_chars[row], tag_ids=tag_ids, scheme=scheme)
            scored[row] = with_typed(scored[row], lattices[row].rules.typed, of_span, model.labels, chosen)
    return scored


def _probability_of_any(
    marginals: SegmentMarginals,
    row: int,
    n_chars: int,
    start: int,
    end: int,
    *,
    tag_ids: Mapping[str, int],
    scheme: str,
) -> float:
    """The probability that [start, end) of a sentence is an entity of any type."""
    labels = {split_tag(tag, scheme)[1] for tag in tag_ids} - {""}
    spans = (Span(start, end, label) for label in labels)
    return min(1.0, sum(span_probability(marginals, row, x, n_chars, tag_ids=tag_ids, scheme=scheme) for x in spans))


def _all_above(
    model: PredictionModel, crf: NumpyCRF, emissions: np.ndarray, lattices: Sequence[Lattice], chosen: Selection
) -> list[list[ScoredSpan]]:
    """The reported spans whose probability reaches the threshold of their label; they may overlap.

    There is no calibration for types that only user words have, so their entities are those of the best tag sequence.
    """
    assert chosen.thresholds is not None
    n_chars = [lattice.n_chars for lattice in lattices]
    marginals = crf.marginals(emissions, n_chars)
    best = _best(model, crf, emissions, lattices, chosen)
    of_lattices = []
    for row, lattice in enumerate(lattices):
        spans = [span for span in best[row] if span.label not in chosen.families]
        for name, labels in chosen.families.items():
            candidates = candidate_spans(
                marginals,
                row,
                lattice.n_chars,
                labels,
                threshold=chosen.thresholds[name],
                tags=model.tags,
                scheme=model.scheme,
                max_lengths=chosen.max_lengths(model.label_facts.max_lengths),
            )
            probability = {Span(start, end, name): p for start, end, p in candidates}
            spans += [
                ScoredSpan(span.start, span.end, name, chosen.score(probability[span]))
                for span in without_forced(list(probability), lattice)
                if trimmed(lattice.text, span.start, span.end) == (span.start, span.end)
            ]
        of_lattices.append(spans)
    return of_lattices
