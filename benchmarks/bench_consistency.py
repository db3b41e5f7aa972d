"""What reading a document again with its own names gives: F1, precision and recall with and without, and the cost.

Documents are runs of consecutive development sentences of the recipe `names`, a line each. MSRA's are the last of its
training file and People's Daily's are held out from the end of it, both in the order of the newspaper, though People's
Daily lacks the sentences that were dropped as duplicates. Those of Resume follow each other as the CVs do. A run may
join several articles.

  cige bench consistency --json docs/bench/consistency.json
  cige bench consistency --size 30 --only msra
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from measure import environment, report, write

from cige.api import NER, load
from cige.data.sentence import Sentence, Span
from cige.entities.scores import score
from cige.recipes.shipped import NAMES
from cige.runtime.native import n_threads
from cige.training.recipe import load_recipe
from cige.training.sources import Source, read_sources

N_ROUNDS = 3  # in turns; the fastest counts
ORDERED = ("msra", "people1998", "resume")  # sets whose development sentences are in the order of their texts


def joined(sentences: Sequence[Sentence], size: int) -> list[Sentence]:
    """Documents of `size` consecutive sentences, a line each."""
    documents = []
    for first in range(0, len(sentences), size):
        text, spans = "", []
        for sentence in sentences[first : first + size]:
            at = len(text)
            spans += [Span(at + span.start, at + span.end, span.label) for span in sentence.spans]
            text += sentence.text + "\n"
        documents.append(Sentence(text, tuple(spans)))
    return documents


def bench_consistency(ner: NER, source: Source, size: int) -> dict[str, Any]:
    """A row: scores in per cent without and with, entities that differ, and the time with as a multiple of without."""
    assert source.types is not None
    compare = partial(source.types.comparable, labels=ner.labels, tree=source.tree)
    documents = joined(source.dev, size)
    gold = [compare(document.spans) for document in documents]
    texts = [document.text for document in documents]
    row: dict[str, Any] = {"set": source.name, "documents": len(documents), "sentences in one": size}
    found, seconds = {}, {}
    for name, consistent in (("without", False), ("with", True)) * N_ROUNDS:
        started = time.perf_counter()
        entities = list(ner.pipe(texts, labels=ner.labels, consistent=consistent))
        seconds[name] = min(seconds.get(name, math.inf), time.perf_counter() - started)
        found[name] = [compare([Span(e.start, e.end, e.label) for e in of_text]) for of_text in entities]
        counts = score(gold, found[name]).overall
        row |= {f"{what}, {name}": 100 * getattr(counts, what) for what in ("f1", "precision", "recall")}
    before, after = ({(k, span) for k, spans in enumerate(found[x]) for span in spans} for x in ("without", "with"))
    row |= {"new": len(after - before), "gone": len(before - after)}
    return row | {"time": seconds["with"] / seconds["without"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="model folder (default: the bundled model)")
    parser.add_argument("--only", action="append", choices=ORDERED, help="only this set (several times)")
    parser.add_argument("--size", type=int, action="append", help="sentences in a document (default: 10 and 30)")
    parser.add_argument("--data-dir", help="holds ner/ ($CIGE_DATA)")
    parser.add_argument("--json", metavar="FILE", help="write the result to this file")
    args = parser.parse_args()
    recipe = load_recipe(NAMES).data
    chosen = [s for s in read_sources(recipe, args.data_dir)[0] if s.name in (args.only or ORDERED)]
    ner = load(args.model)
    assert isinstance(ner, NER)
    ner("预热")
    rows = [bench_consistency(ner, source, size) for source in chosen for size in args.size or (10, 30)]
    report("documents read once, and again with their names", rows)
    write({"environment": environment(threads=n_threads(), n_rounds=N_ROUNDS), "rows": rows}, args.json)


if __name__ == "__main__":
    main()
