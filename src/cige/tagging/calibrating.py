"""Calibrate a model: predict labelled sentences, and fit scores and thresholds to the results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cige.data.sentence import Sentence, Span
from cige.entities.calibration import Calibration, expected_calibration_error, fit
from cige.entities.entity import Entity
from cige.entities.label_facts import LabelFacts
from cige.entities.labels import map_labels
from cige.tagging.finder import EntityFinder
from cige.tagging.selection import Request, Types, all_candidates, best_uncalibrated, select, with_silent_labels
from cige.text.counted import counted

FLOOR = 0.001  # candidates with a lower probability are ignored; a labelled entity below it counts as missed
N_FOLDS = 5


@dataclass(frozen=True)
class SentenceReading:
    """The predictions of a model for one labelled sentence, with uncalibrated probabilities.

    Attributes:
        gold: label and probability of each labelled entity; the probability is 0 if it is not a candidate.
        candidates: probability of every candidate, and whether it is a labelled entity.
        best: the same, for the entities of the best tag sequence only.
    """

    gold: list[tuple[str, float]]
    candidates: list[tuple[float, bool]]
    best: list[tuple[float, bool]]


def read_labelled(
    ner: EntityFinder,
    sentences: Sequence[Sentence],
    *,
    labels: Mapping[str, str] | None = None,
    types: Types = "fine",
    batch_size: int = 16,
) -> list[SentenceReading]:
    """The predictions of `ner` for labelled sentences.

    Entities with labels that do not occur in the sentences are left out, since it is unknown whether they are correct.

    Args:
        labels: data label -> label that the model reports, as in `map_labels`.
        types: whether the labels of the data are the model's own labels or their topmost ancestors.

    Raises:
        DataError: the model has no label for a label of the data, or the data have no entities.
    """
    written = {(labels or {}).get(span.label, span.label) for s in sentences for span in s.spans}
    request = with_silent_labels(Request.of(types=types), written, ner.labels, ner.label_facts)
    reported = {*select(request, ner.labels, ner.label_facts).families}
    gold = map_labels([s.spans for s in sentences], labels or {}, model_labels=reported)
    named = {span.label for spans in gold for span in spans}
    texts = [s.text for s in sentences]
    everything = all_candidates(request, ner.labels, ner.label_facts, floor=FLOOR)
    best = best_uncalibrated(request, ner.labels, ner.label_facts)
    answers = zip(
        gold,
        ner.stream(texts, everything, batch_size=batch_size),
        ner.stream(texts, best, batch_size=batch_size),
        strict=True,
    )
    return [_reading(spans, candidates, predicted, named) for spans, candidates, predicted in answers]


def _reading(gold: list[Span], candidates: list[Entity], best: list[Entity], named: set[str]) -> SentenceReading:
    keys = {(s.start, s.end, s.label) for s in gold}
    probability = {(e.start, e.end, e.label): e.score for e in candidates}

    def judged(entities: list[Entity]) -> list[tuple[float, bool]]:
        return [(e.score, (e.start, e.end, e.label) in keys) for e in entities if e.label in named]

    return SentenceReading([(key[2], probability.get(key, 0.0)) for key in keys], judged(candidates), judged(best))


def calibration_of(readings: Sequence[SentenceReading]) -> Calibration:
    """Fit scores and thresholds to these predictions.

    Scores are fitted to the entities of the best tag sequences and to all other candidates, since both are reported.
    Raises a ValueError if the model found no entities.
    """
    return fit((p for r in readings for p in r.candidates), (g for r in readings for g in r.gold))


def calibrated(facts: LabelFacts, calibration: Calibration, types: Types, domain: str | None = None) -> LabelFacts:
    """The label facts with a new calibration, either the general one or that of a domain."""
    if domain is None:
        return replace(facts, calibration={**facts.calibration, types: calibration})
    calibrations = {**facts.domains.get(domain, {}), types: calibration}
    return replace(facts, domains={**facts.domains, domain: calibrations})


def calibration_errors(readings: Sequence[SentenceReading]) -> tuple[float, float]:
    """Expected calibration error, 0..1, of the best tag sequences: without and with calibration.

    The second uses cross-validation: the scores of each fifth of the sentences are calibrated on the others. Raises a
    ValueError if there are fewer than two sentences, or the model found no entities in the others.
    """
    if len(readings) < 2:
        raise ValueError(f"given {counted(len(readings), 'sentence')}; expected two or more, to check scores on others")
    before = [point for reading in readings for point in reading.best]
    after = []
    for held_out, others in folds(readings):
        scores = calibration_of(others)
        after += [(scores.score(p), right) for reading in held_out for p, right in reading.best]
    return expected_calibration_error(before), expected_calibration_error(after)


def folds(readings: Sequence[SentenceReading]) -> Iterator[tuple[list[SentenceReading], list[SentenceReading]]]:
    """Pairs of (the items of one of N_FOLDS random folds, all other items)."""
    order = np.random.default_rng(0).permutation(len(readings))
    for part in np.array_split(order, min(N_FOLDS, len(readings))):
        chosen = set(part.tolist())
        yield [readings[k] for k in sorted(chosen)], [r for k, r in enumerate(readings) if k not in chosen]
