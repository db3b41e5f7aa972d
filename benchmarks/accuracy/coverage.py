"""What `recall=` promises and what it finds, and how honest scores are, over random halves of labelled sentences.

Each time the model is calibrated on one half of the sentences and measured on the other: the share of the entities that
are reported at each recall asked for, spans reported per entity, and the expected calibration error of the best
readings, as the model has its scores and calibrated.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from cige.api import load
from cige.data.reading import read_sentences
from cige.data.registry import load_split
from cige.entities.calibration import expected_calibration_error
from cige.entities.labels import parse_label_map
from cige.tagging.calibrating import SentenceReading, calibration_of, read_labelled
from cige.tagging.selection import TYPES

TABLES = {"cases": "{rounds} random halves, per cent"}
FLAT = True
RECALLS = (0.8, 0.9, 0.95)
MSRA = ("NR=PER", "NS=LOC", "NT=ORG")


def bench(
    *,
    model: str | None = None,
    data: Annotated[Path | None, "labelled sentences; those of the development split of MSRA by default"] = None,
    labels: Annotated[Sequence[str], "DATA=MODEL, as of `cige evaluate`"] = MSRA,
    types: Annotated[str, TYPES, "of the model's labels"] = "coarse",
    splits: Annotated[int, "random halves"] = 100,
) -> dict[str, Any]:
    """A row per recall asked for and three of scores."""
    sentences = read_sentences(data) if data else load_split("msra", "dev")
    names = parse_label_map(labels, may_drop=True)
    readings = read_labelled(load(model), sentences, labels=names, types=types)
    return {"rounds": splits, "cases": list(rows_of(readings, n_splits=splits))}


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


def rows_of(readings: Sequence[SentenceReading], *, n_splits: int, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Means and standard deviations over splits, in per cent."""
    rng = np.random.default_rng(seed)
    trials = [trial(readings, rng) for _ in range(n_splits)]
    keys = {f"recall {recall}": (f"covered {recall}", f"spans {recall}") for recall in RECALLS}
    keys |= {name: (name, "") for name in ("recall of the best", "error before", "error after")}
    for name, (key, spans) in keys.items():
        own = [t for t in trials if key in t]
        if own:
            values = np.array([t[key] for t in own])
            shares = {"mean": values.mean(), "sd": values.std(), "lowest": values.min(), "highest": values.max()}
            row = {"what": name} | {what: round(100 * float(value), 2) for what, value in shares.items()}
            per_entity = round(float(np.mean([t[spans] for t in own])), 2) if spans else None
            yield row | {"splits": len(own), "spans_per_entity": per_entity}
