"""The runtime in each precision of this processor: F1 on development data beside speed, for the bundled model.

F1 is that of strict entities in per cent: `all` of all types that a set annotates throughout, `names` of PER, LOC and
ORG with their kinds counted as them (see card.py). `texts that differ` have other entities than in float32. Speed is
characters per processor second, text to entities; a ratio is the median of those of rounds in which the forms took
turns, so that what else the machine does at the time counts for all.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

from benchmarks.data import Judge, scored_sets, texts_by_length
from benchmarks.measure import in_turns
from cige.api import NER
from cige.entities.scores import score
from cige.folders.hub import model_folder
from cige.recipes.shipped import TODAY
from cige.runtime import native
from cige.runtime.native_model import NativeModel
from cige.runtime.precision import FLOAT32, available
from cige.training.sources import Source

TABLES = {"scores": "F1 on development data, in per cent", "speeds": "characters per processor second"}
BATCH_SIZES = (1, 32)
LENGTHS = (10, 100, 500)


def bench(
    *, data_dir: Path, model: str | None = None, texts: int = 150, rounds: int = 9, threads: int = 1
) -> dict[str, Any]:
    """Scores, then speeds."""
    forms = available(native.load())
    assert forms[0] == FLOAT32
    ners = {form: NER(NativeModel.load(model_folder(model), precision=form)) for form in forms}
    rows = [
        {"texts": name, "batch_size": n} | speeds(ners, some, batch_size=n, n_rounds=rounds)
        for name, some in texts_by_length(data_dir, texts, LENGTHS).items()
        for n in BATCH_SIZES
    ]
    return {"scores": scores(ners, scored_sets(TODAY, data_dir)), "speeds": rows}


def scores(ners: Mapping[str, NER], sources: Sequence[Source]) -> list[dict[str, Any]]:
    """A row for each set, and their means."""
    rows = []
    for source in sources:
        row: dict[str, Any] = {"set": source.name, "sentences": len(source.dev)}
        first: list[Any] = []
        for form, ner in ners.items():
            judge = Judge(source, ner.labels)
            answers = ner.pipe([s.text for s in source.dev], batch_size=32, labels=ner.labels)
            gold, found = judge.gold(source.dev), [judge.spans(entities) for entities in answers]
            row[f"all, {form}"] = 100 * score(gold, found).overall.f1
            names = [[judge.names(spans) for spans in group] for group in (gold, found)]
            if any(names[0]):
                row[f"names, {form}"] = 100 * score(*names).overall.f1
            first = first or found
            row[f"texts that differ, {form}"] = sum(a != b for a, b in zip(found, first, strict=True))
        rows.append(row)
    columns = [f"{what}, {form}" for form in ners for what in ("all", "names")]
    means = {name: fmean(row[name] for row in rows if name in row) for name in columns}
    return [*rows, {"set": "mean", "sentences": sum(row["sentences"] for row in rows), **means}]


def speeds(ners: Mapping[str, NER], texts: Sequence[str], *, batch_size: int, n_rounds: int) -> dict[str, float]:
    """Characters per processor second of each form, and how many times as fast as the first it is."""
    ways = {form: lambda ner=ner: list(ner.pipe(texts, batch_size=batch_size)) for form, ner in ners.items()}
    taken = in_turns(ways, n_rounds=n_rounds)
    found = {form: sum(map(len, texts)) / t.processor for form, t in taken.items()}
    first, *others = taken
    return found | {f"{form} ratio": median(taken[first].ratios(taken[form])) for form in others}
