"""What `recall=` promises and what it finds, and how honest scores are, over random halves of labelled sentences.

Each time the model is calibrated on one half of the sentences and measured on the other: the share of the entities that
are reported at each recall asked for, spans reported per entity, and the expected calibration error of the best
readings, as the model has its scores and calibrated.

  cige bench coverage --json docs/bench/coverage.json
  cige bench coverage --data weibo/dev.bmes --labels PER.NAM=PER GPE.NAM=LOC ... --model my-model
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
from measure import environment, report, write

from cige.api import load
from cige.data.reading import read_sentences
from cige.data.registry import load_split
from cige.entities.calibration import expected_calibration_error
from cige.entities.labels import parse_label_map
from cige.tagging.calibrating import SentenceReading, calibration_of, read_labelled
from cige.tagging.selection import TYPES

RECALLS = (0.8, 0.9, 0.95)
MSRA = ("NR=PER", "NS=LOC", "NT=ORG")


def trial(readings: Sequence[SentenceReading], rng: np.random.Generator) -> dict[str, float]:
    """One random half calibrates, the other is measured."""
    order = rng.permutation(len(readings)).tolist()
    half = len(order) // 2
    calibration = calibration_of([readings[k] for k in order[:half]])
    others = [readings[k] for k in order[half:]]
    gold = [found for reading in others for found in reading.gold]
    best = [point for reading in others for point in reading.best]
    result = {
        "error before": expected_calibration_error(best),
        "error after": expected_calibration_error([(calibration.score(p), right) for p, right in best]),
        "recall of the best": sum(right for _, right in best) / len(gold),
    }
    for recall in RECALLS:
        try:
            result[f"covered {recall}"] = sum(p >= calibration.threshold(recall, name) for name, p in gold) / len(gold)
        except ValueError:  # the half does not reach it
            continue
        lowest = calibration.thresholds[recall]
        result[f"spans {recall}"] = sum(p >= lowest for r in others for p, _ in r.candidates) / len(gold)
    return result


def bench_coverage(readings: Sequence[SentenceReading], *, n_splits: int, seed: int = 0) -> list[dict[str, Any]]:
    """A row per recall asked for and two of scores, means and standard deviations over splits, in per cent."""
    rng = np.random.default_rng(seed)
    trials = [trial(readings, rng) for _ in range(n_splits)]
    rows = []
    for recall in RECALLS:
        own = [t for t in trials if f"covered {recall}" in t]
        if own:
            covered = np.array([t[f"covered {recall}"] for t in own])
            rows.append(
                _row(f"recall {recall}", covered)
                | {
                    "splits": len(own),
                    "spans_per_entity": round(float(np.mean([t[f"spans {recall}"] for t in own])), 2),
                }
            )
    return rows + [
        _row(name, np.array([t[name] for t in trials])) | {"splits": len(trials), "spans_per_entity": None}
        for name in ("recall of the best", "error before", "error after")
    ]


def _row(name: str, values: np.ndarray) -> dict[str, Any]:
    shares = {"mean": values.mean(), "sd": values.std(), "lowest": values.min(), "highest": values.max()}
    return {"what": name} | {key: round(100 * float(value), 2) for key, value in shares.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="model folder or hub id (default: the bundled model)")
    parser.add_argument("--data", metavar="FILE", help="labelled sentences (default: the development split of MSRA)")
    parser.add_argument("--labels", nargs="+", default=MSRA, metavar="DATA=MODEL", help="as of `cige evaluate`")
    parser.add_argument("--types", choices=TYPES, default="coarse", help="of the model's labels (default: %(default)s)")
    parser.add_argument("--splits", type=int, default=100, help="random halves (default: %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write the result to this file")
    args = parser.parse_args()
    sentences = read_sentences(args.data) if args.data else load_split("msra", "dev")
    labels = parse_label_map(args.labels, may_drop=True)
    readings = read_labelled(load(args.model), sentences, labels=labels, types=args.types)
    rows = bench_coverage(readings, n_splits=args.splits)
    report(f"{args.splits} random halves of {len(sentences):,} sentences, per cent", rows)
    write(environment(threads=1, n_rounds=args.splits) | {"cases": rows}, args.json)


if __name__ == "__main__":
    main()
