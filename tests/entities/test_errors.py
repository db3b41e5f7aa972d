"""Errors by kind: every entity that is not right is in exactly one."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from cige.data.sentence import Span
from cige.entities.entity import Entity
from cige.entities.errors import NOTHING, confusion, list_errors
from cige.entities.scores import score

TEXT = "李明在北京大学和罗氏公司工作。"


def entity(start, end, label, score=0.9):
    return Entity(start, end, label, TEXT[start:end], score)


def test_kinds():
    gold = [[Span(0, 2, "PER"), Span(3, 7, "ORG"), Span(8, 12, "ORG"), Span(12, 14, "ACT")]]
    found = [[entity(0, 2, "LOC"), entity(3, 5, "LOC"), entity(8, 12, "ORG"), entity(14, 15, "PER")]]
    errors = list_errors(gold, found)
    assert [(e.kind, e.gold and e.gold.start, e.found and e.found.start) for e in errors] == [
        ("wrong type", 0, 0),
        ("wrong boundary", 3, 3),
        ("missed", 12, None),
        ("spurious", None, 14),
    ]
    assert errors[1].to_dict(TEXT) == {
        "kind": "wrong boundary",
        "sentence": 0,
        "text": TEXT,
        "gold": {"start": 3, "end": 7, "label": "ORG", "text": "北京大学"},
        "found": {"start": 3, "end": 5, "label": "LOC", "text": "北京", "score": 0.9},
    }


def test_of_two_that_overlap_the_nearer_is_the_counterpart():
    gold = [[Span(3, 7, "ORG")]]
    found = [[entity(3, 5, "LOC"), entity(3, 8, "ORG")]]
    assert {(e.kind, e.found.label) for e in list_errors(gold, found)} == {
        ("wrong boundary", "ORG"),
        ("spurious", "LOC"),
    }


def test_an_entity_with_other_parts_is_an_error():
    text = "第一和口腔医院"
    gold = [[Span(0, 7, "ORG", ((0, 2), (5, 7)))]]
    assert list_errors(gold, [[Entity(0, 7, "ORG", "第一医院", 0.9, parts=((0, 2), (5, 7)))]]) == []
    found = [[Entity(0, 7, "ORG", text, 0.9)]]
    (error,) = list_errors(gold, found)
    assert (error.kind, score(gold, found, texts=[text]).f1) == ("wrong boundary", 0.0)
    assert error.to_dict(text)["gold"] == {
        "start": 0,
        "end": 7,
        "label": "ORG",
        "text": "第一医院",
        "parts": [[0, 2], [5, 7]],
    }
    assert confusion(gold, found) == {"ORG": {"ORG": 0, NOTHING: 1}, NOTHING: {"ORG": 1, NOTHING: 0}}


def test_confusion_counts_spans():
    gold = [[Span(0, 2, "PER"), Span(3, 7, "ORG")], [Span(0, 2, "PER")]]
    found = [[entity(0, 2, "LOC"), entity(3, 5, "LOC")], [entity(0, 2, "PER")]]
    table = confusion(gold, found)
    assert list(table) == ["LOC", "ORG", "PER", NOTHING]
    assert table["PER"] == {"LOC": 1, "ORG": 0, "PER": 1, NOTHING: 0}
    assert table["ORG"][NOTHING] == 1 and table[NOTHING]["LOC"] == 1
    assert confusion([[]], [[]]) == {}


def test_confusion_counts_every_label_of_a_span():
    gold = [[Span(3, 7, "ORG"), Span(3, 7, "LOC")]]
    found = [[entity(3, 7, "ORG"), entity(3, 7, "PER")]]
    table = confusion(gold, found)
    assert table["ORG"]["ORG"] == 1 and table["LOC"]["PER"] == 1
    assert sum(sum(row.values()) for row in table.values()) == 2
    assert confusion(gold, [[entity(3, 7, "PER")]])[NOTHING] == {"LOC": 0, "ORG": 0, "PER": 0, NOTHING: 0}


SPANS = st.lists(st.tuples(st.integers(0, 13), st.integers(1, 4), st.sampled_from(["PER", "LOC"])), max_size=5).map(
    lambda rows: {(a, min(15, a + n)): label for a, n, label in rows}
)


@given(SPANS, SPANS)
def test_every_entity_is_right_or_in_one_error(gold, found):
    labelled = [Span(a, b, label) for (a, b), label in gold.items()]
    entities = [entity(a, b, label) for (a, b), label in found.items()]
    errors = list_errors([labelled], [entities])
    right = {(s.start, s.end, s.label) for s in labelled} & {(e.start, e.end, e.label) for e in entities}
    assert Counter(e.gold for e in errors if e.gold) == Counter(
        s for s in labelled if (s.start, s.end, s.label) not in right
    )
    assert Counter(e.found for e in errors if e.found) == Counter(
        e for e in entities if (e.start, e.end, e.label) not in right
    )
    for e in errors:
        if e.gold and e.found:
            assert e.gold.start < e.found.end and e.found.start < e.gold.end
            same = (e.gold.start, e.gold.end) == (e.found.start, e.found.end)
            assert e.kind == ("wrong type" if same else "wrong boundary")
        else:
            assert e.kind == ("missed" if e.gold else "spurious")


def test_entities_that_share_no_character_are_no_counterparts():
    parts = ((0, 2), (5, 7))
    gold = [[Span(0, 7, "ORG", parts)]]
    in_gap = Entity(2, 5, "ORG", "和口腔", 0.9)
    assert [error.kind for error in list_errors(gold, [[in_gap]])] == ["missed", "spurious"]
    same, outline = Entity(0, 7, "LOC", "第一医院", 0.9, parts=parts), Entity(0, 7, "ORG", "第一和口腔医院", 0.9)
    errors = list_errors(gold, [[same, outline]])
    assert [(error.kind, error.found) for error in errors] == [("wrong type", same), ("spurious", outline)]
