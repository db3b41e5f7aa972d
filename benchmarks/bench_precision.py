"""The runtime in each precision of this processor: F1 on development data beside speed, for the bundled model.

    OMP_NUM_THREADS=1 python benchmarks/bench_precision.py --data-dir DATA --json precision.json

F1 is that of strict entities in per cent: `all` of all types that a set annotates throughout, `names` of PER, LOC and
ORG with their kinds counted as them (see bench_card.py). `texts that differ` have other entities than in float32.
Speed is characters per processor second, text to entities; a ratio is the median of those of rounds in which the forms
took turns, so that what else the machine does at the time counts for all.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any

from bench_card import names_of, spans_of
from bench_rivals import texts_by_name
from measure import add_data_option, environment, options, report, use_threads, write
from scored_sets import scored_sets

from cige.api import NER
from cige.entities.scores import score
from cige.folders.hub import model_folder
from cige.recipes.shipped import TODAY
from cige.runtime import native
from cige.runtime.native_model import NativeModel
from cige.runtime.precision import FLOAT32, available
from cige.training.sources import Source

BATCH_SIZES = (1, 32)
LENGTHS = (10, 100, 500)


def scores(ners: Mapping[str, NER], sources: Sequence[Source]) -> list[dict[str, Any]]:
    """A row for each set, and their means."""
    rows = []
    for source in sources:
        assert source.types is not None
        row: dict[str, Any] = {"set": source.name, "sentences": len(source.dev)}
        texts, first = [s.text for s in source.dev], None
        for form, ner in ners.items():
            compare = partial(source.types.comparable, labels=ner.labels, tree=source.tree)
            found = [compare(spans_of(e)) for e in ner.pipe(texts, batch_size=32, labels=ner.labels)]
            gold = [compare(s.spans) for s in source.dev]
            row[f"all, {form}"] = 100 * score(gold, found).overall.f1
            names = [[names_of(spans, source.tree) for spans in group] for group in (gold, found)]
            if any(names[0]):
                row[f"names, {form}"] = 100 * score(*names).overall.f1
            first = found if first is None else first
            row[f"texts that differ, {form}"] = sum(a != b for a, b in zip(found, first, strict=True))
        rows.append(row)
    columns = [f"{what}, {form}" for form in ners for what in ("all", "names")]
    means = {name: fmean(row[name] for row in rows if name in row) for name in columns}
    return [*rows, {"set": "mean", "sentences": sum(row["sentences"] for row in rows), **means}]


def speeds(ners: Mapping[str, NER], texts: Sequence[str], *, batch_size: int, n_rounds: int) -> dict[str, float]:
    """Characters per processor second of each form, and how many times as fast as the first it is; a round warms up."""
    rounds = []
    for _ in range(n_rounds + 1):
        taken = []
        for ner in ners.values():
            begin = time.process_time()
            for _ in ner.pipe(texts, batch_size=batch_size):
                pass
            taken.append(time.process_time() - begin)
        rounds.append(taken)
    n_chars, forms = sum(map(len, texts)), list(enumerate(ners))
    found = {form: n_chars / median(taken[k] for taken in rounds[1:]) for k, form in forms}
    return found | {f"{form} ratio": median(taken[0] / taken[k] for taken in rounds[1:]) for k, form in forms[1:]}


def main() -> None:
    parser = options(__doc__, n_rounds=9)
    add_data_option(parser)
    parser.set_defaults(threads=1)
    parser.add_argument("--model", help="folder of a FLAT (default: the bundled model)")
    parser.add_argument("--texts", type=int, default=150, help="of each source (default: %(default)s)")
    args = parser.parse_args()
    use_threads(args.threads)
    folder = model_folder(args.model)
    forms = available(native.load())
    assert forms[0] == FLOAT32
    ners = {form: NER(NativeModel.load(folder, precision=form)) for form in forms}
    sources = scored_sets(TODAY, args.data_dir)
    result: dict[str, Any] = {"environment": environment(threads=args.threads, n_rounds=args.rounds)}
    result["scores"] = scores(ners, sources)
    report("F1 on development data, in per cent", result["scores"])
    texts = texts_by_name(Path(args.data_dir), n_texts=args.texts, lengths=LENGTHS)
    result["speeds"] = [
        {"texts": name, "batch_size": n, **speeds(ners, some, batch_size=n, n_rounds=args.rounds)}
        for name, some in texts.items()
        for n in BATCH_SIZES
    ]
    report("characters per processor second", result["speeds"])
    write(result, args.json)


if __name__ == "__main__":
    main()
