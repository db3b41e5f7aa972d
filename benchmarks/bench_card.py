"""The tables of a model card: F1 by development set and by type, and how honest scores are.

Development sentences are those of the model's recipe, and of sets that it was not trained on: each set's own, or held
out from the end of its training file. Entities are strict, and judged by the types that a set annotates throughout.
"names" are PER, LOC and ORG with their kinds counted as them. Calibration errors are those of the best readings, with
scores as the model reports them.

  cige bench card --json docs/bench/card.json
  cige bench card --model runs/names/model --only weibo --only msra
  cige bench card --min-score 0.4
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from measure import environment, report, write
from scored_sets import RECIPES, scored_sets

from cige.api import NER, load
from cige.data.sentence import Span
from cige.data.source_types import TypeTree
from cige.entities.calibration import expected_calibration_error
from cige.entities.entity import Entity
from cige.entities.scores import score
from cige.recipes.shipped import TODAY
from cige.runtime.native import n_threads
from cige.training.sources import Source

CORE = ("PER", "LOC", "ORG")


def bench_card(ner: NER, sources: Iterable[Source], *, min_score: float = 0.0) -> list[dict[str, Any]]:
    """A row per set and type: precision, recall and F1 in per cent; the row "names" also has the calibration error."""
    rows = []
    for source in sources:
        assert source.types is not None
        compare = partial(source.types.comparable, labels=ner.labels, tree=source.tree)
        found = list(ner.pipe([s.text for s in source.dev], batch_size=32, labels=ner.labels, min_score=min_score))
        gold = [compare(s.spans) for s in source.dev]
        own = [compare(spans_of(entities)) for entities in found]
        for type_ in sorted({span.label for spans in gold for span in spans}):
            rows.append(_row(source, type_, _of_type(gold, type_), _of_type(own, type_)))
        gold, own = ([names_of(spans, source.tree) for spans in group] for group in (gold, own))
        if not any(gold):
            continue
        points = [
            (entity.score, span in right)
            for entities, right in zip(found, gold, strict=True)
            for entity in entities
            for span in names_of(compare(spans_of([entity])), source.tree)
        ]
        error = {"calibration error": 100 * expected_calibration_error(points)}
        rows.insert(0, _row(source, "names", gold, own) | error)
    return rows


def _row(source: Source, type_: str, gold: Sequence[Sequence[Span]], found: Sequence[Sequence[Span]]) -> dict[str, Any]:
    counts = score(gold, found).overall
    percent = {name: 100 * getattr(counts, name) for name in ("precision", "recall", "f1")}
    return {"set": source.name, "type": type_, "sentences": len(gold), "entities": sum(map(len, gold)), **percent}


def spans_of(entities: Iterable[Entity]) -> list[Span]:
    return [Span(entity.start, entity.end, entity.label) for entity in entities]


def _of_type(spans: Iterable[Sequence[Span]], type_: str) -> list[list[Span]]:
    return [[span for span in of_text if span.label == type_] for of_text in spans]


def names_of(spans: Iterable[Span], tree: TypeTree) -> list[Span]:
    """Those that are PER, LOC or ORG, or of one of their kinds, as these."""
    tops = ((span, next((x for x in tree.line(span.label) if x in CORE), None)) for span in spans)
    return [Span(span.start, span.end, top) for span, top in tops if top is not None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="model folder (default: the bundled model)")
    parser.add_argument("--recipe", choices=RECIPES, default=TODAY, help="that of the model (default: %(default)s)")
    parser.add_argument("--only", action="append", metavar="SET", help="only this set (several times)")
    parser.add_argument("--data-dir", help="holds ner/ ($CIGE_DATA)")
    parser.add_argument("--min-score", type=float, default=0.0, metavar="P", help="as in `cige predict` (default: 0)")
    parser.add_argument("--json", metavar="FILE", help="write the result to this file")
    args = parser.parse_args()
    sources = scored_sets(args.recipe, args.data_dir)
    chosen = [s for s in sources if args.only is None or s.name in args.only]
    ner = load(args.model, precision="float32")
    assert isinstance(ner, NER)
    rows = bench_card(ner, chosen, min_score=args.min_score)
    report("F1 of names and of each type, in per cent", rows)
    write({"environment": environment(threads=n_threads(), n_rounds=1), "rows": rows}, args.json)


if __name__ == "__main__":
    main()
