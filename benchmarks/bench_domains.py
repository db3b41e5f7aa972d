"""How honest scores are in each domain: as the model has them, with its general calibration, and with the domain's own.

Each domain's development sentences are those of some sets of the model's recipe. Its own calibration is judged by
cross-validation over fifths of the sentences. A model is not calibrated on sets that it was not trained on. The
expected calibration error of few entities is above zero even where every score is right: `least` is what scores that
are right would show on as many entities (mean of 200 draws).

  cige bench domains --json docs/bench/domains.json
  cige bench domains --write my-model         # puts the calibrations of all domains into a model's manifest
  cige bench domains --write my-model --general        # and the general one, of all domains together

Scores are lower on text of another kind than that of training. With --unseen, the general calibration reads a set with
a tagger that was trained without it (`cige bench left_out --recipe today` makes such taggers):

  cige bench domains --write my-model --general --unseen cmner=runs/left_out/cmner/labelled/model
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from measure import environment, report, write
from scored_sets import DOMAINS, RECIPES, UNSEEN, scored_sets

from cige.api import NER, load
from cige.data.sentence import Span
from cige.entities.calibration import Calibration, expected_calibration_error
from cige.folders.manifest import update_manifest
from cige.recipes.shipped import TODAY
from cige.runtime.native import n_threads
from cige.tagging.calibrating import (
    FLOOR,
    SentenceReading,
    calibrated,
    calibration_errors,
    calibration_of,
)
from cige.tagging.selection import Request, Types, all_candidates, best_uncalibrated, select
from cige.training.sources import Source

N_DRAWS = 200
N_UNSEEN = 1000


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
        found.append(
            SentenceReading(
                gold=[(key[2], highest.get(key, 0.0)) for key in sorted(right)],
                candidates=[(p, key in right) for key, p in highest.items()],
                best=[(e.score, key in right) for e in answers for key in judged([Span(e.start, e.end, e.label)])],
            )
        )
    return found


def least_error(scores: Sequence[float], *, seed: int = 0) -> float:
    """The expected calibration error, 0..1, that scores which are right show on entities as many as these."""
    rng = np.random.default_rng(seed)
    draws = rng.random((N_DRAWS, len(scores))) < np.array(scores)
    return float(np.mean([expected_calibration_error(list(zip(scores, own.tolist(), strict=True))) for own in draws]))


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


def unseen_option(text: str) -> tuple[str, str]:
    """A set's name and the folder of the tagger that was trained without it, of NAME=MODEL."""
    name, equals, model = text.partition("=")
    if not (name and equals and model):
        raise argparse.ArgumentTypeError(f"{text!r}: expected NAME=MODEL, such as cmner=runs/left_out/cmner/model")
    return name, model


def bench_domain(general: Calibration | None, readings: Sequence[SentenceReading]) -> dict[str, Any]:
    """The errors of one domain in per cent."""
    before, own = calibration_errors(readings)
    points = [point for reading in readings for point in reading.best]
    scores = [calibration_of(readings).score(p) for p, _ in points]
    row = {"entities": sum(len(r.gold) for r in readings), "found": len(points), "uncalibrated": 100 * before}
    if general is not None:
        row["general"] = 100 * expected_calibration_error([(general.score(p), right) for p, right in points])
    return row | {"own": 100 * own, "least": 100 * least_error(scores)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="model folder (default: the bundled model)")
    parser.add_argument(
        "--write", metavar="FOLDER", type=Path, help="measure this model, and keep the calibrations in it"
    )
    parser.add_argument("--general", action="store_true", help="fit the general calibration as well")
    parser.add_argument(
        "--unseen",
        action="extend",
        nargs="+",
        default=[],
        type=unseen_option,
        metavar="NAME=MODEL",
        help="for the general calibration, the model that reads this set, which was trained without it",
    )
    parser.add_argument("--only", action="append", metavar="DOMAIN", help="only this domain (several times)")
    parser.add_argument("--recipe", choices=RECIPES, default=TODAY, help="that of the model (default: %(default)s)")
    parser.add_argument("--data-dir", help="holds ner/ ($CIGE_DATA)")
    parser.add_argument("--json", metavar="FILE", help="write the result to this file")
    args = parser.parse_args()
    sources = {source.name: source for source in scored_sets(args.recipe, args.data_dir)}
    domains = DOMAINS[args.recipe]
    unseen = {name: (name,) for name in UNSEEN if args.recipe == TODAY}
    ner = load(args.write or args.model)
    assert isinstance(ner, NER)
    rows: list[dict[str, Any]] = []
    facts = ner.label_facts
    known = {name for of_domain in domains.values() for name in of_domain}
    if wrong := {name for name, _ in args.unseen} - known:
        parser.error(
            f"--unseen: {', '.join(sorted(wrong))} is no set of the domains; they are {', '.join(sorted(known))}"
        )
    readers: dict[str, NER] = {}
    for name, model in args.unseen:
        reader = load(model)
        assert isinstance(reader, NER)
        readers[name] = reader
    if args.general:
        facts = replace(facts, calibration=general_calibrations(ner, sources, domains, readers))
    for domain in args.only or (*domains, *unseen):
        for types in ("fine", "coarse"):
            readings = [r for name in {**domains, **unseen}[domain] for r in readings_of(ner, sources[name], types)]
            if not any(reading.gold for reading in readings):
                continue
            rows.append({"domain": domain, "types": types} | bench_domain(facts.calibration.get(types), readings))
            if domain in domains:
                facts = calibrated(facts, calibration_of(readings), types, domain)
    report("Expected calibration error of the best readings, in per cent", rows)
    if args.write is not None:
        update_manifest(args.write, **facts.to_manifest())
    write({"environment": environment(threads=n_threads(), n_rounds=1), "rows": rows}, args.json)


if __name__ == "__main__":
    main()
