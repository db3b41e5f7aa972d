"""Tags <-> spans on generated cases, with seqeval as the judge of ill-formed ones."""

from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.scheme import IOB2, IOBES, Entities

from cige.data.sentence import Span
from cige.data.tags import (
    SCHEMES,
    illegal_transitions,
    lenient_spans,
    repair,
    spans_to_tags,
    tag_set,
    tags_to_spans,
)

LABELS = ["PER", "LOC", "GPE.NAM"]
schemes = st.sampled_from(SCHEMES)


def any_tags(scheme, max_size=12):
    """Sequences of a scheme's tags, most of them ill-formed."""
    return st.lists(st.sampled_from(tag_set(LABELS[:2], scheme)), max_size=max_size)


@st.composite
def flat_spans(draw):
    """(n_chars, sorted spans without overlap)."""
    lengths = draw(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 5), st.sampled_from(LABELS)), max_size=8))
    spans, position = [], 0
    for gap, length, label in lengths:
        spans.append(Span(position + gap, position + gap + length, label))
        position += gap + length
    return position + draw(st.integers(0, 3)), spans


def seqeval_spans(tags, scheme):
    if scheme == "BIO":
        found = Entities([tags], scheme=IOB2)
    else:
        found = Entities([["I" + tag[1:] if tag[0] == "M" else tag for tag in tags]], scheme=IOBES)
    return sorted(Span(entity.start, entity.end, entity.tag) for entity in found.entities[0])


@given(flat_spans(), schemes)
def test_spans_survive_the_way_through_tags(case, scheme):
    n_chars, spans = case
    tags = spans_to_tags(n_chars, spans, scheme)
    assert len(tags) == n_chars
    assert tags_to_spans(tags, scheme) == spans
    assert lenient_spans(tags, scheme) == spans
    assert illegal_transitions(tags, scheme) == []
    assert repair(tags, scheme) == tags


@settings(max_examples=500)
@given(schemes.flatmap(lambda scheme: st.tuples(st.just(scheme), any_tags(scheme))))
def test_strict_reading_equals_seqeval(case):
    scheme, tags = case
    assert tags_to_spans(tags, scheme) == seqeval_spans(tags, scheme)


@settings(max_examples=300)
@given(schemes.flatmap(lambda scheme: st.tuples(st.just(scheme), any_tags(scheme))))
def test_repair_gives_legal_tags_once_and_for_all(case):
    scheme, tags = case
    mended = repair(tags, scheme)
    assert len(mended) == len(tags)
    assert illegal_transitions(mended, scheme) == []
    assert repair(mended, scheme) == mended
    assert (mended == tags) == (not illegal_transitions(tags, scheme))
    for before, after in zip(tags, mended, strict=True):  # no character loses or changes its type
        assert before.partition("-")[2] == after.partition("-")[2]


@given(schemes.flatmap(lambda scheme: st.tuples(st.just(scheme), any_tags(scheme))))
def test_a_legal_sequence_reads_the_same_strictly_and_leniently(case):
    scheme, tags = case
    if not illegal_transitions(tags, scheme):
        assert lenient_spans(tags, scheme) == tags_to_spans(tags, scheme)
