"""The tables of a model card: F1 by development set and by type, and how honest scores are.

Development sentences are those of the model's recipe, and of sets that it was not trained on: each set's own, or held
out from the end of its training file. Entities are strict, and judged by the types that a set annotates throughout.
"names" are PER, LOC and ORG with their kinds counted as them. Calibration errors are those of the best readings, with
scores as the model reports them.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from benchmarks.data import RECIPES, Judge, percent, scored_sets, tagger
from benchmarks.measure import environment
from cige.api import NER
from cige.data.sentence import Span
from cige.entities.calibration import expected_calibration_error
from cige.entities.scores import score
from cige.recipes.shipped import TODAY
from cige.runtime.native import n_threads
from cige.training.sources import Source

TABLES = {"rows": "F1 of names and of each type, in per cent"}


def bench(
    *,
    data_dir: Path,
    model: str | None = None,
    recipe: Annotated[str, RECIPES, "that of the model"] = TODAY,
    only: Annotated[Sequence[str], "these sets"] = (),
    min_score: Annotated[float, "as in `cige predict`"] = 0.0,
) -> dict[str, Any]:
    """The scores of a model."""
    ner = tagger(model, precision="float32")
    rows = [row for source in scored_sets(recipe, data_dir, only) for row in rows_of(ner, source, min_score=min_score)]
    rows.sort(key=lambda row: row["type"] != "names")
    return {"environment": environment(threads=n_threads(), n_rounds=1), "rows": rows}


def rows_of(ner: NER, source: Source, *, min_score: float = 0.0) -> Iterator[dict[str, Any]]:
    """A row for names and for each type: precision, recall and F1; that of names also has the calibration error."""
    judge = Judge(source, ner.labels)
    found = list(ner.pipe([s.text for s in source.dev], batch_size=32, labels=ner.labels, min_score=min_score))
    gold, own = judge.gold(source.dev), [judge.spans(entities) for entities in found]
    names, own_names = ([judge.names(spans) for spans in group] for group in (gold, own))
    if any(names):
        points = [
            (entity.score, span in right)
            for entities, right in zip(found, names, strict=True)
            for entity in entities
            for span in judge.names(judge.spans([entity]))
        ]
        error = {"calibration error": 100 * expected_calibration_error(points)}
        yield _row(source, "names", names, own_names) | error
    for type_ in sorted({span.label for spans in gold for span in spans}):
        yield _row(
            source, type_, *([[x for x in spans if x.label == type_] for spans in group] for group in (gold, own))
        )


def _row(source: Source, type_: str, gold: list[list[Span]], found: list[list[Span]]) -> dict[str, Any]:
    facts = {"set": source.name, "type": type_, "sentences": len(gold), "entities": sum(map(len, gold))}
    return facts | percent(score(gold, found).overall)
