"""How honest scores are in each domain: as the model has them, with its general calibration, and with the domain's own.

Each domain's development sentences are those of some sets of the model's recipe. Its own calibration is judged by
cross-validation over fifths of the sentences. A model is not calibrated on sets that it was not trained on. The
expected calibration error of few entities is above zero even where every score is right: `least` is what scores that
are right would show on as many entities (mean of 200 draws).

--write MODEL puts the calibrations of all domains into a model's manifest, and with --general the one of all domains
together. Scores are lower on text of another kind than that of training. With --unseen, the general calibration reads a
set with a tagger that was trained without it (`python -m benchmarks left_out --recipe today` makes such taggers):

  python -m benchmarks domains --write my-model --general --unseen cmner=runs/left_out/cmner/labelled/model
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from benchmarks.data import DOMAINS, RECIPES, UNSEEN, scored_sets, tagger
from benchmarks.measure import environment
from cige.api import NER
from cige.data.sentence import Span
from cige.entities.calibration import Calibration, expected_calibration_error
from cige.errors import CigeError
from cige.folders.manifest import update_manifest
from cige.recipes.shipped import TODAY
from cige.runtime.native import n_threads
from cige.tagging.calibrating import FLOOR, SentenceReading, calibrated, calibration_errors, calibration_of
from cige.tagging.selection import Request, Types, all_candidates, best_uncalibrated, select
from cige.training.sources import Source

TABLES = {"rows": "Expected calibration error of the best readings, in per cent"}
N_DRAWS = 200
N_UNSEEN = 1000


def bench(
    *,
    data_dir: Path,
    model: str | None = None,
    write: Annotated[Path | None, "measure the model of this folder, and keep the calibrations in it"] = None,
    general: Annotated[bool, "fit the general calibration as well"] = False,
    unseen: Annotated[Sequence[str], "NAME=MODEL, for --general the tagger that was trained without this set"] = (),
    only: Annotated[Sequence[str], "these domains"] = (),
    recipe: Annotated[str, RECIPES, "that of the model"] = TODAY,
) -> dict[str, Any]:
    """A row for each domain, for fine and for coarse types."""
    domains = DOMAINS[recipe]
    readers = taggers_of(unseen, {name for of_domain in domains.values() for name in of_domain})
    sources = {source.name: source for source in scored_sets(recipe, data_dir)}
    measured = {**domains, **({name: (name,) for name in UNSEEN} if recipe == TODAY else {})}
    ner = tagger(write or model)
    facts = ner.label_facts
    if general:
        facts = replace(facts, calibration=general_calibrations(ner, sources, domains, readers))
    rows: list[dict[str, Any]] = []
    kinds: tuple[Types, ...] = ("fine", "coarse")
    for domain in only or measured:
        for types in kinds:
            readings = [r for name in measured[domain] for r in readings_of(ner, sources[name], types)]
            if not any(reading.gold for reading in readings):
                continue
            rows.append({"domain": domain, "types": types} | errors_of(facts.calibration.get(types), readings))
            if domain in domains:
                facts = calibrated(facts, calibration_of(readings), types, domain)
    if write is not None:
        update_manifest(write, **facts.to_manifest())
    return {"environment": environment(threads=n_threads(), n_rounds=1), "rows": rows}


def taggers_of(unseen: Sequence[str], known: set[str]) -> dict[str, NER]:
    """The taggers of NAME=MODEL, by the name of a set of the domains."""
    found = {}
    for text in unseen:
        name, _, model = text.partition("=")
        if not (name and model):
            raise CigeError(f"--unseen {text!r}: expected NAME=MODEL, such as cmner=runs/left_out/cmner/model")
        if name not in known:
            raise CigeError(f"--unseen: {name} is no set of the domains; they are {', '.join(sorted(known))}")
        found[name] = tagger(model)
    return found


def readings_of(
    ner: NER, source: Source, types: Types, *, labels: Sequence[str] | None = None
) -> list[SentenceReading]:
    """What the model makes of the development sentences of a set, judged by the types that the set annotates."""
    facts, request, types_of_set = ner.label_facts, Request.of(types=types, labels=labels), source.types
    assert types_of_set is not None
    reported = sorted(select(request, ner.labels, facts).families)

    def judged(spans: Iterable[Span]) -> list[tuple[int, int, str]]:
        if types == "coarse":
            tops = ((span, facts.coarse(span.label, ner.labels)) for span in spans)
            spans = [Span(span.start, span.end, top) for span, top in tops if top is not None]
        own = types_of_set.comparable(spans, reported, source.tree)
        return [(span.start, span.end, span.label) for span in own]

    texts = [sentence.text for sentence in source.dev]
    everything = ner.stream(texts, all_candidates(request, ner.labels, facts, floor=FLOOR), batch_size=32)
    best = ner.stream(texts, best_uncalibrated(request, ner.labels, facts), batch_size=32)
    found = []
    for sentence, candidates, answers in zip(source.dev, everything, best, strict=True):
        right = set(judged(sentence.spans))
        # Where the set annotates a parent type, only the most probable of a span's types can be judged.
        highest: dict[tuple[int, int, str], float] = {}
        for e in candidates:
            for key in judged([Span(e.start, e.end, e.label)]):
                highest[key] = max(e.score, highest.get(key, 0.0))
        gold = [(key[2], highest.get(key, 0.0)) for key in sorted(right)]
        points = [(e.score, key in right) for e in answers for key in judged([Span(e.start, e.end, e.label)])]
        found.append(SentenceReading(gold, [(p, key in right) for key, p in highest.items()], points))
    return found


def general_calibrations(
    ner: NER, sources: Mapping[str, Source], domains: Mapping[str, Sequence[str]], unseen: Mapping[str, NER]
) -> dict[str, Calibration]:
    """The calibrations of fine labels, all of them requested, and of coarse ones, on all domains together.

    Args:
        unseen: taggers that were trained without a set, by its name; they read N_UNSEEN of its sentences.
    """
    requested: dict[Types, list[str] | None] = {"fine": ner.labels, "coarse": None}
    found = {}
    for types, labels in requested.items():
        readings = []
        for name in (name for of_domain in domains.values() for name in of_domain):
            reader, source = unseen.get(name, ner), sources[name]
            if name in unseen:
                source = replace(source, dev=[*source.dev, *source.train][:N_UNSEEN])
            readings += readings_of(reader, source, types, labels=labels)
        found[types] = calibration_of(readings)
    return found


def errors_of(general: Calibration | None, readings: Sequence[SentenceReading]) -> dict[str, Any]:
    """The errors of one domain in per cent."""
    before, own = calibration_errors(readings)
    points = [point for reading in readings for point in reading.best]
    row = {"entities": sum(len(r.gold) for r in readings), "found": len(points), "uncalibrated": 100 * before}
    if general is not None:
        row["general"] = 100 * expected_calibration_error([(general.score(p), right) for p, right in points])
    calibration = calibration_of(readings)
    return row | {"own": 100 * own, "least": 100 * least_error([calibration.score(p) for p, _ in points])}


def least_error(scores: Sequence[float], *, seed: int = 0) -> float:
    """The expected calibration error, 0..1, that scores which are right show on entities as many as these."""
    rng = np.random.default_rng(seed)
    draws = rng.random((N_DRAWS, len(scores))) < np.array(scores)
    return float(np.mean([expected_calibration_error(list(zip(scores, own.tolist(), strict=True))) for own in draws]))
