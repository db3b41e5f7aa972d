"""Decode the scores of a pair grid into entities, which may be nested.

If the head scores spans, a span is an entity of every label whose score is above 0, and the reported score is the
logistic function of it, so that an entity has at least 0.5; the spans of a sentence are decided one by one. If the head
scores relations, entities are paths of relations, and the reported score is the lowest probability of these, which may
be below 0.5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np

from cige.data.gold_spans import N_RELATIONS, NEXT
from cige.lattice.lattice import Lattice
from cige.lexicon.rules import ForcedSpan
from cige.nn.word_paths import find_paths
from cige.tagging.edges import not_entered, trimmed, whole_edges
from cige.tagging.prediction_model import PredictionModel, ScoredSpan
from cige.tagging.selection import Selection
from cige.tagging.user_rules import ENOUGH, forced_entities
from cige.text.closed import Stretch

Parts = tuple[tuple[int, int], ...]
MARGIN = 1e-3  # of scores, for rounding


class PairGrid(Protocol):
    """The settings of a head (models.pair_grid_config): whether it scores "spans" or "relations"."""

    @property
    def scores(self) -> str: ...


class PairGridModel(PredictionModel, Protocol):
    """A PredictionModel whose head scores pairs of characters."""

    @property
    def pair_grid(self) -> PairGrid: ...


def decode_grid(
    model: PairGridModel, scores: np.ndarray, lattices: Sequence[Lattice], chosen: Selection
) -> list[list[ScoredSpan]]:
    """The entities of each lattice, sorted, with their scores.

    No span overlaps a closed stretch of its lattice or is longer than its label allows. Punctuation at its edges is
    taken off, and a bracket whose counterpart is inside is added, as in flat entities. Forced stretches are always
    entities: other spans may contain them or are left out if they overlap them. Blocked spans never are. If several
    labels are reported as one, its probability is that of at least one of them.
    `scores` are float[B, T, M, K], of the span [i, i + m + 1) and the label k of `model.tags` at [i, m, k]; or if the
    head scores relations, float[B, T, 2 M - 1, K + 2] (see nn/word_pairs.py).
    """
    limits, least = chosen.max_lengths(model.label_facts.max_lengths), _least_score(chosen)
    spans_of_lattices = []
    for row, lattice in enumerate(lattices):
        own_scores = scores[row, : lattice.n_chars]
        if model.pair_grid.scores == "spans":
            spans_of_lattices.append(
                _reported(_spans(model, own_scores, lattice, chosen, limits, least), own_scores, lattice, model, chosen)
            )
        else:
            named = _of_relations(decode_relations(own_scores, lattice, model.tags), lattice, model, chosen, limits)
            spans_of_lattices.append(_reported(named, None, lattice, model, chosen))
    return spans_of_lattices


def _spans(
    model: PairGridModel,
    scores: np.ndarray,
    lattice: Lattice,
    chosen: Selection,
    limits: Mapping[str, int],
    least: float,
) -> list[ScoredSpan]:
    """The spans of one lattice that rules allow, with the labels and scores with which they are reported. Most have no
    label with a score above `least`, so none that can be reported."""
    n_chars, band = scores.shape[:2]
    is_open = np.ones((n_chars, band), bool)  # [T, M]
    lengths = np.arange(1, band + 1)
    for start, end in lattice.closed:
        is_open &= _outside(start, end, n_chars, lengths)
    for span in lattice.rules.forced:
        is_open &= _outside(span.start, span.end, n_chars, lengths) | _around(span, n_chars, lengths)
    for start, end in _blocked(lattice):
        if end - start <= band:
            is_open[start, end - start - 1] = False
    starts, more = np.nonzero(is_open & (scores.max(2) > least))
    is_inside = starts + more < n_chars
    starts, more = starts[is_inside], more[is_inside]
    if not len(starts):
        return []
    shut = not_entered(lattice)
    longest = np.array([limits.get(label, band) for label in model.tags])
    probabilities = _logistic(scores[starts, more])  # [N, K]
    probabilities[more[:, None] >= longest] = 0.0
    highest = dict(zip(model.tags, probabilities.max(0).tolist(), strict=True))
    number = {label: k for k, label in enumerate(model.tags)}
    spans: dict[tuple[int, int, str, Parts], ScoredSpan] = {}
    for name, labels in chosen.families.items():
        threshold = ENOUGH if chosen.thresholds is None else chosen.thresholds[name]
        if sum(highest[label] for label in labels) < threshold - MARGIN:
            continue  # no span has this label: the probability of at least one is not above the sum of all
        probability = 1 - (1 - probabilities[:, [number[label] for label in labels]]).prod(1)
        above = probability > ENOUGH if chosen.thresholds is None else probability >= threshold
        for k in np.flatnonzero(above).tolist():
            found = ScoredSpan(int(starts[k]), int(starts[k] + more[k]) + 1, name, chosen.score(float(probability[k])))
            entity = _trimmed(lattice.text, found)
            if entity is not None and is_open[entity.start, entity.end - entity.start - 1]:
                _keep_best(spans, _whole(lattice.text, entity, shut, min(band, limits.get(name, band))))
    return list(spans.values())


def _trimmed(text: str, span: ScoredSpan) -> ScoredSpan | None:
    """The span without the whitespace and punctuation at its edges, or None if nothing else is in it."""
    edges = trimmed(text, span.start, span.end)
    if edges is None or edges == (span.start, span.end):
        return span if edges else None
    first, last = edges
    parts = tuple((max(start, first), min(end, last)) for start, end in span.parts if start < last and first < end)
    if span.parts and not parts:
        return None
    start, end = (parts[0][0], parts[-1][1]) if parts else edges
    return span._replace(start=start, end=end, parts=parts if len(parts) > 1 else ())


def _whole(text: str, span: ScoredSpan, closed: Sequence[Stretch], longest: int | None) -> ScoredSpan:
    """The span with its edges as by `whole_edges`; one with a gap stays as it is."""
    if span.parts:
        return span
    start, end = whole_edges(text, span.start, span.end, closed=closed, longest=longest)
    return span._replace(start=start, end=end)


def _keep_best(spans: dict[tuple[int, int, str, Parts], ScoredSpan], span: ScoredSpan) -> None:
    """Add a span, unless it is there with a higher score: a span that was trimmed may be found without the mark too."""
    key = (span.start, span.end, span.label, span.parts)
    if key not in spans or spans[key].score < span.score:
        spans[key] = span


def _least_score(chosen: Selection) -> float:
    """A score below which no label of a span can make it an entity."""
    least = 1.0
    for name, labels in chosen.families.items():
        threshold = ENOUGH if chosen.thresholds is None else chosen.thresholds[name]
        least = min(least, 1 - (1 - threshold) ** (1 / max(1, len(labels))))  # if all its labels had this probability
    return float(np.log(least / (1 - least))) - MARGIN if 0 < least < 1 else -np.inf


def _of_relations(
    spans: Sequence[ScoredSpan], lattice: Lattice, model: PairGridModel, chosen: Selection, limits: Mapping[str, int]
) -> list[ScoredSpan]:
    """The entities that rules allow, with the labels and scores with which they are reported."""
    best: dict[tuple[int, int, str, Parts], ScoredSpan] = {}
    blocked, shut = set(_blocked(lattice)), not_entered(lattice)
    for found in spans:
        name, span = chosen.name_of(found.label, model.labels), _trimmed(lattice.text, found)
        if span is None:
            continue
        pieces = span.parts or ((span.start, span.end),)
        closed = [*lattice.closed, *((s.start, s.end) for s in lattice.rules.forced if not _contains(span, s))]
        if (
            name is None
            or span.end - span.start > limits.get(span.label, span.end)
            or blocked.issuperset({(span.start, span.end), *pieces})  # all parts too: a gap in a word is not the word
            or any(a < end and start < b for a, b in pieces for start, end in closed)
            or (chosen.thresholds is not None and span.score < chosen.thresholds[name])
        ):
            continue
        span = _whole(lattice.text, span, shut, limits.get(span.label))
        _keep_best(best, span._replace(label=name, score=chosen.score(span.score)))
    return list(best.values())


def _reported(
    spans: list[ScoredSpan], scores: np.ndarray | None, lattice: Lattice, model: PairGridModel, chosen: Selection
) -> list[ScoredSpan]:
    """The spans, with those that rules add, sorted; `scores` are those of spans, or None."""

    def of_any_type(start: int, end: int) -> float:
        if scores is None or end - start > scores.shape[1]:
            return max((s.score for s in spans if _is_all_of(s, start, end)), default=0.0)
        return float(1 - (1 - _logistic(scores[start, end - start - 1])).prod())

    for word in (*lattice.rules.typed, *lattice.rules.typed_around):
        spans = _typed(spans, word, of_any_type, model, chosen)
    spans = [span for span in spans if span.score >= chosen.min_score]
    spans += forced_entities(lattice, model.labels, chosen)
    return sorted(spans, key=lambda span: (span.start, span.end, span.label, span.parts))


def _blocked(lattice: Lattice) -> tuple[tuple[int, int], ...]:
    return lattice.rules.blocked + lattice.rules.blocked_around


def _contains(span: ScoredSpan, forced: ForcedSpan) -> bool:
    """Whether a span, or one of its parts, contains a forced stretch, which is not all of it."""
    pieces = span.parts or ((span.start, span.end),)
    is_within = any(start <= forced.start and forced.end <= end for start, end in pieces)
    return is_within and not _is_all_of(span, forced.start, forced.end)


def _is_all_of(span: ScoredSpan, start: int, end: int) -> bool:
    """Whether a span is [start, end), without a gap."""
    return (span.start, span.end) == (start, end) and not span.parts


def _typed(
    spans: list[ScoredSpan],
    word: ForcedSpan,
    probability: Callable[[int, int], float],
    model: PairGridModel,
    chosen: Selection,
) -> list[ScoredSpan]:
    """The spans, in which a typed word has the user's label if it is more probably an entity of any type than not."""
    others = [span for span in spans if not _is_all_of(span, word.start, word.end)]
    any_type, name = probability(word.start, word.end), chosen.name_of_word(word.label, model.labels)
    if any_type < ENOUGH and len(others) == len(spans):
        return spans
    return others if name is None else [*others, ScoredSpan(word.start, word.end, name, chosen.score(any_type))]


def _outside(start: int, end: int, n_chars: int, lengths: np.ndarray) -> np.ndarray:
    """bool[T, M]: the spans that do not overlap [start, end)."""
    first = np.arange(n_chars)[:, None]
    return (first + lengths <= start) | (first >= end)


def _around(span: ForcedSpan, n_chars: int, lengths: np.ndarray) -> np.ndarray:
    """bool[T, M]: the spans that contain a forced stretch and more."""
    first = np.arange(n_chars)[:, None]
    return (first <= span.start) & (first + lengths >= span.end) & (lengths > span.end - span.start)


def _logistic(scores: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-scores.astype(np.float64).clip(-500, 500)))


def decode_relations(scores: np.ndarray, lattice: Lattice, labels: Sequence[str]) -> list[ScoredSpan]:
    """The entities of a lattice with probabilities and the model's labels, sorted; rules of users are not applied.

    Args:
        scores: float[T, 2 M - 1, K + 2] of the T characters of the lattice (see nn/word_pairs.py).
        labels: the K labels.
    """
    reach = scores.shape[1] // 2
    spans = []
    for path in find_paths(scores.argmax(-1)):  # relations to what is beyond the text are on no path
        places = path.characters
        cells = [(a, b - a + reach, NEXT) for a, b in pairwise(places)]  # (first character, cell, class) of relations
        cells.append((places[-1], places[0] - places[-1] + reach, path.type + N_RELATIONS))
        probability = min(_probability(scores[first, cell], number) for first, cell, number in cells)
        parts = path.parts
        of_entity = parts if len(parts) > 1 else ()
        spans.append(ScoredSpan(parts[0][0], parts[-1][1], labels[path.type], probability, parts=of_entity))
    return sorted(spans, key=lambda span: (span.start, span.end, span.label, span.parts))


def _probability(scores: np.ndarray, number: int) -> float:
    exponents = np.exp(scores.astype(np.float64) - scores.max())
    return float(exponents[number] / exponents.sum())
