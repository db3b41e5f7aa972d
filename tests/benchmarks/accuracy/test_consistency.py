"""Documents of joined sentences, and the table of what reading them again gives."""

from __future__ import annotations

import pytest
import tiny

from benchmarks.accuracy.consistency import joined, row_of
from cige.api import NER
from cige.data.source_types import SourceTypes, TypeTree
from cige.training.sources import Source


def test_joined_sentences_keep_their_spans():
    dev = tiny.sentences(7, seed=3)
    documents = joined(dev, 3)
    assert [d.text for d in documents] == ["".join(s.text + "\n" for s in dev[k : k + 3]) for k in (0, 3, 6)]
    names = [document.text[span.start : span.end] for document in documents for span in document.spans]
    assert names == [s.text[span.start : span.end] for s in dev for span in s.spans]


def test_the_table_has_the_scores_of_both():
    ner = NER(tiny.trained_model())
    dev = tiny.sentences(30, seed=11, new_name_prob=0.5)
    types = SourceTypes(map={x: (x,) for x in tiny.LABELS}, annotated=tuple(tiny.LABELS))
    source = Source("people", [], [types.read(s) for s in dev], types=types, tree=TypeTree({}))
    row = row_of(ner, source, 6)
    for name, consistent in (("without", False), ("with", True)):
        right = found = gold = 0
        for document in joined(dev, 6):
            own = {(e.start, e.end, e.label) for e in ner(document.text, consistent=consistent)}
            theirs = {(s.start, s.end, s.label) for s in document.spans}
            right, found, gold = right + len(own & theirs), found + len(own), gold + len(theirs)
        assert row[f"f1, {name}"] == pytest.approx(200 * right / (found + gold))
    assert row["documents"] == 5 and row["time"] > 0
