"""The tables of a model card."""

from __future__ import annotations

import pytest
import tiny

from benchmarks.accuracy.card import rows_of
from cige.api import NER
from cige.data.source_types import SourceTypes, TypeTree
from cige.training.sources import Source


def test_rows_agree_with_a_count_of_their_own():
    ner = NER(tiny.trained_model())
    dev = tiny.sentences(40, seed=11, new_name_prob=0.5)
    types = SourceTypes(map={"PER": ("PER",), "LOC": ("LOC",), "ORG": ("ORG",)}, annotated=("PER", "LOC"))
    people = Source("people", [], [types.read(s) for s in dev], types=types, tree=TypeTree({}))
    rows = {row["type"]: row for row in rows_of(ner, people)}
    assert list(rows) == ["names", "LOC", "PER"], "organisations are not annotated throughout"
    right = found = gold = 0
    for sentence in dev:
        own = {(e.start, e.end, e.label) for e in ner(sentence.text) if e.label != "ORG"}
        theirs = {(s.start, s.end, s.label) for s in sentence.spans if s.label != "ORG"}
        right, found, gold = right + len(own & theirs), found + len(own), gold + len(theirs)
    assert rows["names"]["entities"] == gold
    assert rows["names"]["f1"] == pytest.approx(200 * right / (found + gold))
    assert 0 <= rows["names"]["calibration error"] <= 100 and "calibration error" not in rows["PER"]
