"""What several models agree on."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cige.data.sentence import OPEN, Span
from cige.entities.entity import Entity
from cige.tagging.agreement import Judge, agreed_spans

ANY = Judge()


def entities(*found: tuple[int, int, str] | tuple[int, int, str, float]) -> list[Entity]:
    return [Entity(s, e, label, "x" * (e - s), *(score or [0.9])) for s, e, label, *score in found]


def agreed(*found: list[Entity], judges: list[Judge] | None = None, **options: float) -> list[tuple[int, int, str]]:
    spans = agreed_spans(found, judges or [ANY] * len(found), **options)
    return [(s.start, s.end, s.label) for s in spans]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([(0, 2, "PER")], [(0, 2, "PER")], [(0, 2, "PER")]),
        ([(0, 2, "PER")], [], [(0, 2, OPEN)]),
        ([(0, 2, "COMPANY")], [(0, 2, "ORG")], [(0, 2, "COMPANY|ORG")]),
        ([(0, 4, "ORG")], [(0, 2, "LOC"), (2, 4, "ORG")], [(0, 4, OPEN)]),
        ([(0, 3, "ORG"), (5, 6, "PER")], [(2, 5, "ORG")], [(0, 5, OPEN), (5, 6, OPEN)]),
        ([(0, 2, "LOC"), (2, 4, "ORG")], [(0, 2, "LOC"), (2, 4, "ORG")], [(0, 2, "LOC"), (2, 4, "ORG")]),
        ([], [], []),
    ],
)
def test_two_judges(first, second, expected):
    assert agreed(entities(*first), entities(*second)) == expected


def test_a_doubtful_find_leaves_its_place_open():
    assert agreed(entities((0, 2, "PER", 0.4)), entities((0, 2, "PER"))) == [(0, 2, OPEN)]
    assert agreed(entities((0, 2, "PER", 0.4)), entities((0, 2, "PER")), min_score=0.3) == [(0, 2, "PER")]


def test_a_judge_of_some_labels_is_the_only_one_of_these():
    judges = [ANY, ANY, Judge(frozenset({"TIME"}))]
    assert agreed([], [], entities((0, 2, "TIME")), judges=judges) == [(0, 2, "TIME")]
    one_says_time = entities((0, 2, "TIME")), entities((3, 5, "PER")), entities((3, 5, "PER"))
    assert agreed(*one_says_time, judges=judges) == [(3, 5, OPEN)], "two of three were asked about PER, one found it"
    both = entities((3, 5, "PER")), entities((3, 5, "PER")), entities((0, 1, "LOC"))
    assert agreed(*both, judges=judges) == [(3, 5, "PER")]
    clash = entities((0, 2, "PER")), entities((0, 2, "PER")), entities((0, 2, "TIME"))
    assert agreed(*clash, judges=judges) == [(0, 2, "PER|TIME")]


def disjoint(draw) -> list[Entity]:
    cuts = sorted(draw(st.sets(st.integers(0, 12), max_size=8)))
    return entities(*((a, b, draw(st.sampled_from("AB"))) for a, b in zip(cuts[::2], cuts[1::2], strict=False)))


@given(st.composite(disjoint)(), st.composite(disjoint)())
def test_every_find_is_covered_and_what_is_closed_was_found_by_both(first, second):
    spans = agreed_spans([first, second], [ANY, ANY])
    assert all(a.end <= b.start for a, b in pairwise(spans))
    covered = {k for span in spans for k in range(span.start, span.end)}
    assert covered == {k for entity in [*first, *second] for k in range(entity.start, entity.end)}
    for span in spans:
        if span.label != OPEN:
            for own in (first, second):
                assert any((e.start, e.end) == (span.start, span.end) and e.label in span.label for e in own)


def test_spans_are_those_of_sentences():
    assert agreed_spans([entities((1, 3, "PER"))] * 2, [ANY, ANY]) == (Span(1, 3, "PER"),)


def test_an_entity_with_a_gap_leaves_its_stretch_open():
    found = [Entity(0, 7, "ORG", "第一医院", 0.9, parts=((0, 2), (5, 7))), Entity(8, 9, "PER", "x", 0.9)]
    assert agreed(found, found) == [(0, 7, OPEN), (8, 9, "PER")]
    assert agreed(found, judges=[ANY]) == [(0, 7, OPEN), (8, 9, "PER")]
