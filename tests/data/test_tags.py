"""Tag schemes by hand; generated cases are in tests/properties/test_tag_properties.py."""

import numpy as np
import pytest

from cige.data.sentence import Span
from cige.data.tags import (
    allowed_transitions,
    illegal_transitions,
    lenient_spans,
    repair,
    spans_to_tags,
    split_tag,
    tag_set,
    tags_to_spans,
)
from cige.errors import DataError

SPANS = [Span(0, 1, "A"), Span(1, 3, "A"), Span(4, 8, "B.x")]


@pytest.mark.parametrize(
    ("scheme", "tags"),
    [
        ("BMES", ["S-A", "B-A", "E-A", "O", "B-B.x", "M-B.x", "M-B.x", "E-B.x"]),
        ("BIOES", ["S-A", "B-A", "E-A", "O", "B-B.x", "I-B.x", "I-B.x", "E-B.x"]),
        ("BIO", ["B-A", "B-A", "I-A", "O", "B-B.x", "I-B.x", "I-B.x", "I-B.x"]),
    ],
)
def test_spans_become_tags_and_come_back(scheme, tags):
    assert spans_to_tags(8, SPANS, scheme) == tags
    assert spans_to_tags(8, reversed(SPANS), scheme) == tags
    assert tags_to_spans(tags, scheme) == SPANS
    assert lenient_spans(tags, scheme) == SPANS
    assert illegal_transitions(tags, scheme) == []


@pytest.mark.parametrize(
    ("span", "message"),
    [
        (Span(0, 9, "A"), "9"),
        (Span(2, 2, "A"), "2..2"),
        (Span(-1, 1, "A"), "-1"),
        (Span(2, 5, "A"), r"^Z at \[1, 3\) and A at \[2, 5\) overlap"),
    ],
)
def test_spans_that_flat_tags_cannot_hold_are_refused(span, message):
    with pytest.raises(DataError, match=message):
        spans_to_tags(8, [Span(1, 3, "Z"), span])


@pytest.mark.parametrize("tag", ["B", "B-", "-A", "", "X-A", "o", "M", "BB-A"])
def test_unknown_tags_are_refused(tag):
    with pytest.raises(DataError, match="unknown tag"):
        split_tag(tag)
    with pytest.raises(DataError, match="unknown tag"):
        tags_to_spans([tag])


def test_a_tag_of_another_scheme_is_refused_and_the_scheme_named():
    with pytest.raises(DataError, match="BIO"):
        tags_to_spans(["S-A"], "BIO")
    with pytest.raises(DataError, match="BMES, BIOES, BIO"):
        tag_set(["A"], "IOB1")


def test_a_label_may_hold_dashes():
    assert split_tag("B-A-b") == ("B", "A-b")


def test_strict_and_lenient_readings_differ_as_the_published_scorers_do():
    tags = ["B-LOC", "O", "O", "E-ORG", "B-PER", "S-LOC", "E-PER", "M-PER", "B-ORG", "M-ORG"]
    assert tags_to_spans(tags) == [Span(5, 6, "LOC")]
    assert lenient_spans(tags) == [
        Span(0, 4, "LOC"),  # what stands between B and E is passed over, and the type is B's
        Span(4, 5, "PER"),
        Span(5, 6, "LOC"),
        Span(8, 9, "ORG"),  # left open at the end: one character
    ]


def test_illegal_transitions_are_reported_with_place_and_reason():
    faults = illegal_transitions(["M-A", "E-A", "B-A", "E-B", "O", "B-A"])
    assert [(f.position, f.previous, f.tag) for f in faults] == [
        (0, None, "M-A"),
        (3, "B-A", "E-B"),
        (6, "B-A", None),
    ]
    assert faults[0].why == "M-A must follow B-A or M-A"
    assert faults[1].why == "E-B must follow B-B or M-B"
    assert faults[2].why == "B-A must be followed by M-A or E-A"


def test_repair_starts_and_closes_entities_by_its_rule():
    assert repair(["M-A", "E-A", "O", "B-A", "B-A", "E-A", "E-B", "M-B"]) == [
        *("B-A", "E-A", "O"),
        *("S-A", "B-A", "E-A"),
        *("S-B", "S-B"),
    ]
    assert repair(["I-A", "I-B", "I-B", "O", "I-A"], "BIO") == ["B-A", "B-B", "I-B", "O", "B-A"]


def test_tag_sets_list_outside_first_and_labels_in_order():
    assert tag_set(["B", "A", "B"]) == ["O", "B-A", "M-A", "E-A", "S-A", "B-B", "M-B", "E-B", "S-B"]
    assert tag_set(["A"], "BIOES") == ["O", "B-A", "I-A", "E-A", "S-A"]
    assert tag_set(["A"], "BIO") == ["O", "B-A", "I-A"]


@pytest.mark.parametrize("scheme", ["BMES", "BIOES", "BIO"])
def test_allowed_transitions_are_those_that_are_not_illegal(scheme):
    tags = tag_set(["A", "B"], scheme)
    start, between, end = allowed_transitions(tags)
    assert (start.dtype, between.dtype, end.dtype) == (np.dtype(bool),) * 3
    assert (start.shape, between.shape, end.shape) == ((len(tags),), (len(tags),) * 2, (len(tags),))
    for i, tag in enumerate(tags):
        at_start = [fault for fault in illegal_transitions([tag], scheme) if fault.position == 0]
        at_end = [fault for fault in illegal_transitions([tag], scheme) if fault.position == 1]
        assert start[i] == (not at_start)
        assert end[i] == (not at_end)
        for j, other in enumerate(tags):
            inside = [fault for fault in illegal_transitions([tag, other], scheme) if fault.position == 1]
            assert between[i, j] == (not inside), (tag, other)


def test_allowed_transitions_keep_the_order_of_the_tags():
    start, between, end = allowed_transitions(["E-A", "O", "B-A"])
    assert start.tolist() == [False, True, True]
    assert end.tolist() == [True, True, False]
    assert between.tolist() == [[False, True, True], [False, True, True], [True, False, False]]
