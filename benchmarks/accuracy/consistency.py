"""What reading a document again with its own names gives: F1, precision and recall with and without, and the cost.

Documents are runs of consecutive development sentences of the recipe `names`, a line each. MSRA's are the last of its
training file and People's Daily's are held out from the end of it, both in the order of the newspaper, though People's
Daily lacks the sentences that were dropped as duplicates. Those of Resume follow each other as the CVs do. A run may
join several articles. The ways take turns, and the fastest of three counts.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from benchmarks.data import Judge, percent, scored_sets, tagger
from benchmarks.measure import environment, in_turns
from cige.api import NER
from cige.data.sentence import Sentence, Span
from cige.entities.scores import score
from cige.recipes.shipped import NAMES
from cige.runtime.native import n_threads
from cige.training.sources import Source

TABLES = {"rows": "documents read once, and again with their names"}
N_ROUNDS = 3
ORDERED = ("msra", "people1998", "resume")  # sets whose development sentences are in the order of their texts


def bench(
    *,
    data_dir: Path,
    model: str | None = None,
    only: Annotated[Sequence[str], ORDERED, "these sets"] = ORDERED,
    size: Annotated[Sequence[int], "sentences in a document"] = (10, 30),
) -> dict[str, Any]:
    """A row for each set and size."""
    ner = tagger(model)
    rows = [row_of(ner, source, n) for source in scored_sets(NAMES, data_dir, only) for n in size]
    return {"environment": environment(threads=n_threads(), n_rounds=N_ROUNDS), "rows": rows}


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


def row_of(ner: NER, source: Source, size: int) -> dict[str, Any]:
    """Scores in per cent without and with, entities that differ, and the time with as a multiple of without."""
    judge, documents = Judge(source, ner.labels), joined(source.dev, size)
    texts = [document.text for document in documents]
    row: dict[str, Any] = {"set": source.name, "documents": len(documents), "sentences in one": size}
    answers: dict[str, list[Any]] = {}

    def read(name: str) -> None:
        answers[name] = list(ner.pipe(texts, labels=ner.labels, consistent=name == "with"))

    taken = in_turns({name: partial(read, name) for name in ("without", "with")}, n_rounds=N_ROUNDS)
    found = {name: [judge.spans(entities) for entities in answer] for name, answer in answers.items()}
    for name, spans in found.items():
        scores = percent(score(judge.gold(documents), spans).overall)
        row |= {f"{what}, {name}": scores[what] for what in ("f1", "precision", "recall")}
    before, after = ({(k, span) for k, spans in enumerate(found[x]) for span in spans} for x in ("without", "with"))
    row |= {"new": len(after - before), "gone": len(before - after)}
    return row | {"time": min(taken["with"].clocks) / min(taken["without"].clocks)}
