"""Forced and blocked stretches in decoding: compared with a list of all readings of short sentences."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cige.data.tags import allowed_transitions, tag_set, tags_to_spans
from cige.entities.label_facts import LabelFacts
from cige.lattice.lattice import Lattice
from cige.lexicon.rules import ForcedSpan, Rules
from cige.nn.crf_numpy import NumpyCRF
from cige.tagging.blocking import BlockingCRF
from cige.tagging.prediction import decode_spans
from cige.tagging.selection import Selection

LABELS = ["X", "Y"]


def model(scheme: str, seed: int = 0, labels: list[str] = LABELS) -> SimpleNamespace:
    tags = tag_set(labels, scheme)
    rng = np.random.default_rng(seed)
    start, between, end = (
        np.where(allowed, rng.normal(size=allowed.shape), -np.inf) for allowed in allowed_transitions(tags)
    )
    crf = NumpyCRF(start=start, transitions=between, end=end)
    return SimpleNamespace(tags=tags, labels=labels, scheme=scheme, crf=crf, label_facts=LabelFacts())


def lattice(n_chars: int, forced=(), blocked=()) -> Lattice:
    rules = Rules(tuple(ForcedSpan(*span) for span in forced), tuple(blocked))
    return Lattice(text="字" * n_chars, words=np.zeros((0, 3), np.int32), n_base=0, rules=rules)


def readings(made: SimpleNamespace, emissions: np.ndarray) -> list[tuple[float, set[tuple[int, int, str]]]]:
    """(weight, entities) of every legal reading of float[T, L]."""
    crf, found = made.crf, []
    for path in product(range(len(made.tags)), repeat=len(emissions)):
        score = crf.start[path[0]] + crf.end[path[-1]] + sum(emissions[t, k] for t, k in enumerate(path))
        score += sum(crf.transitions[a, b] for a, b in pairwise(path))
        if score > -np.inf:
            spans = tags_to_spans([made.tags[k] for k in path], made.scheme)
            found.append((float(np.exp(score)), {(s.start, s.end, s.label) for s in spans}))
    return found


def holds(rules: Rules, entities: set[tuple[int, int, str]]) -> bool:
    """Whether the forced stretches are entities."""
    places = {(start, end) for start, end, _ in entities}
    return all(
        (f.start, f.end, f.label) in entities if f.label in LABELS else (f.start, f.end) in places for f in rules.forced
    )


def reaches_beyond(entity: tuple[int, int, str], blocked: tuple[int, int]) -> bool:
    (start, end, _), (first, last) = entity, blocked
    return start < last and end > first and not (first <= start and end <= last)


def allowed_readings(rules: Rules, every: list[tuple[float, set[tuple[int, int, str]]]]):
    """The readings in which the forced stretches are entities, no blocked span is one, and no entity reaches beyond a
    blocked span unless one does in the best reading without blocked spans."""
    ways = [way for way in every if holds(rules, way[1])]
    free = max(ways, key=lambda way: way[0])[1]
    taken = {(f.start, f.end) for f in rules.forced} | set(rules.blocked)
    ends = [span for span in rules.blocked if not any(reaches_beyond(x, span) for x in free if x[:2] not in taken)]
    return [
        (weight, entities)
        for weight, entities in ways
        if not {x[:2] for x in entities} & set(rules.blocked)
        and not any(reaches_beyond(x, span) for x in entities for span in ends)
    ]


@st.composite
def sentences(draw):
    """A scheme, a length, a seed, and rules that can hold together."""
    scheme = draw(st.sampled_from(["BMES", "BIOES", "BIO"]))
    n_chars = draw(st.integers(1, 4 if scheme != "BIO" else 5))
    places = [(a, b) for a in range(n_chars) for b in range(a + 1, n_chars + 1)]
    forced: list[tuple[int, int, str]] = []
    for a, b in draw(st.lists(st.sampled_from(places), max_size=2)):
        if all(b <= c or a >= d for c, d, _ in forced):
            forced.append((a, b, draw(st.sampled_from([*LABELS, "OTHER"]))))
    blocked = draw(st.lists(st.sampled_from(places), max_size=7, unique=True))
    beside = sorted((a, b) for a, b in blocked if all(b <= c or a >= d for c, d, _ in forced))
    return scheme, n_chars, draw(st.integers(0, 10**6)), sorted(forced), beside


@settings(max_examples=80, deadline=None)
@given(sentences())
def test_the_best_reading_that_the_rules_allow_and_its_probabilities(sentence):
    scheme, n_chars, seed, forced, blocked = sentence
    made, one = model(scheme, seed), lattice(n_chars, forced, blocked)
    emissions = np.random.default_rng(seed).normal(scale=2, size=(1, n_chars, len(made.tags)))
    # Beside a sentence without rules, and padded.
    padded = np.concatenate([np.pad(emissions, ((0, 0), (0, 2), (0, 0))), np.ones((1, n_chars + 2, len(made.tags)))])
    found = decode_spans(made, padded, [one, lattice(n_chars + 2)])[0]
    ways = allowed_readings(one.rules, readings(made, emissions[0]))
    total = sum(weight for weight, _ in ways)
    best = max(ways, key=lambda way: way[0])[1]
    forced_places = {(a, b): label for a, b, label in forced}
    assert {(s.start, s.end, s.label) for s in found} == {
        (a, b, forced_places.get((a, b), label)) for a, b, label in best
    }
    assert [(s.start, s.end) for s in found] == sorted((a, b) for a, b, _ in best)
    for span in found:
        assert span.forced == ((span.start, span.end) in forced_places)
        if span.forced:
            assert span.score == 1.0
        else:
            key = (span.start, span.end, span.label)
            share = sum(weight for weight, entities in ways if key in entities) / total
            assert span.score == pytest.approx(share, abs=1e-9)


@pytest.mark.parametrize("scheme", ["BMES", "BIO"])
def test_without_blocked_stretches_a_blocking_crf_is_the_trained_one(scheme):
    made = model(scheme)
    emissions = np.random.default_rng(1).normal(size=(1, 6, len(made.tags)))
    crf = BlockingCRF(made.crf, tags=made.tags, scheme=scheme, blocked=[])
    assert crf.decode(emissions, [6]) == made.crf.decode(emissions, [6])
    ours, theirs = (x.marginals(emissions, [6]) for x in (crf, made.crf))
    assert ours.log_z == pytest.approx(theirs.log_z)
    for tags in (["B-X"], ["O", "O"], ["O", "B-Y"]):
        ids = [made.tags.index(tag) for tag in tags]
        assert ours.probability(0, 2, ids) == pytest.approx(theirs.probability(0, 2, ids))


def test_no_more_tags_than_stretches_that_overlap_need():
    made = model("BMES")
    sizes = [
        len(BlockingCRF(made.crf, tags=made.tags, scheme="BMES", blocked=blocked).start)
        for blocked in (
            [(0, 1)],
            [(0, 2), (2, 5), (7, 9)],
            [(0, 2), (0, 4)],
            [(0, 3), (2, 4), (4, 6)],
            [(a, b) for a in range(8) for b in range(a + 1, 9)],  # nothing in a stretch of eight
        )
    ]
    assert sizes == [9, 9 + 8, 9 + 8, 9 + 16, 9 + 8]  # four more tags a label and stretch


@pytest.mark.parametrize("scheme", ["BMES", "BIO"])
def test_a_sure_entity_gives_way_to_the_next_best(scheme):
    """Blocked with a probability of 1 - 1e-30, which nothing that subtracts probabilities would survive."""
    made = model(scheme)
    tags = ["O", "B-X", "I-X", "O"] if scheme == "BIO" else ["O", "B-X", "E-X", "O"]
    emissions = np.zeros((1, 4, len(made.tags)))
    for t, tag in enumerate(tags):
        emissions[0, t, made.tags.index(tag)] = 70
    (free,), (blocked,) = (decode_spans(made, emissions, [lattice(4, (), own)]) for own in ([], [(1, 3)]))
    assert [(s.start, s.end) for s in free] == [(1, 3)]
    assert (1, 3) not in [(s.start, s.end) for s in blocked]
    assert all(np.isfinite(s.score) and s.score > 0.1 for s in blocked)


@pytest.mark.parametrize("scheme", ["BMES", "BIO"])
def test_of_a_forced_stretch_over_the_edge_the_part_within_is_no_other_entity(scheme):
    made = model(scheme)
    emissions = np.random.default_rng(2).normal(size=(1, 5, len(made.tags)))
    for seed in range(20):
        emissions = np.random.default_rng(seed).normal(scale=3, size=(1, 5, len(made.tags)))
        (spans,) = decode_spans(made, emissions, [lattice(5, [(-3, 2, "X"), (4, 9, "OTHER")])])
        assert [(s.start, s.end, s.label) for s in spans if s.forced] == [(4, 9, "OTHER")]
        assert all(s.start >= 2 and s.end <= 4 for s in spans if not s.forced)


def test_what_no_emission_allows_is_forced_all_the_same():
    made = model("BMES")
    emissions = np.full((1, 2, len(made.tags)), -np.inf)
    emissions[:, :, 0] = 0
    (spans,) = decode_spans(made, emissions, [lattice(2, [(0, 2, "OTHER")])])
    assert [(s.start, s.end, s.label, s.score) for s in spans] == [(0, 2, "OTHER", 1.0)]


@settings(max_examples=40, deadline=None)
@given(sentences())
def test_candidates_are_those_that_the_rules_allow_and_their_probabilities(sentence):
    scheme, n_chars, seed, forced, blocked = sentence
    made, one = model(scheme, seed), lattice(n_chars, forced, blocked)
    emissions = np.random.default_rng(seed).normal(scale=2, size=(1, n_chars, len(made.tags)))
    every = Selection({label: label for label in LABELS}, thresholds=dict.fromkeys(LABELS, 0.05))
    (found,) = decode_spans(made, emissions, [one], every)
    ways = allowed_readings(one.rules, readings(made, emissions[0]))
    total = sum(weight for weight, _ in ways)
    keys = {key for _, entities in ways for key in entities if all(key[:2] != (a, b) for a, b, _ in forced)}
    shares = {key: sum(weight for weight, entities in ways if key in entities) / total for key in keys}
    assert {(s.start, s.end, s.label): pytest.approx(s.score) for s in found if not s.forced} == {
        key: share for key, share in shares.items() if share >= 0.05
    }
    assert [(s.start, s.end, s.label) for s in found if s.forced] == forced


def test_forced_stretches_have_no_greatest_length_and_may_be_closed():
    made = model("BMES")
    made.label_facts = LabelFacts(max_lengths={"X": 2, "Y": 2})
    shut = replace(lattice(6, [(0, 4, "X")]), closed=((0, 1), (3, 5)))
    (spans,) = decode_spans(made, np.ones((1, 6, len(made.tags))), [shut])
    assert [(s.start, s.end, s.label) for s in spans if s.forced] == [(0, 4, "X")]
    assert all(s.start == 5 for s in spans if not s.forced)


def test_a_stretch_is_blocked_though_it_is_what_trimming_leaves():
    made = model("BMES")
    emissions = np.zeros((1, 4, len(made.tags)))
    for t, tag in enumerate(["B-X", "M-X", "E-X", "O"]):
        emissions[0, t, made.tags.index(tag)] = 30
    for blocked, found in (((), [(0, 2)]), (((0, 1), (0, 2), (1, 2)), [])):
        one = replace(lattice(4, (), blocked), text="天津，是")
        assert [(s.start, s.end) for s in decode_spans(made, emissions, [one])[0]] == found


def test_labels_that_were_asked_for_choose_among_forced_entities_too():
    made, one = model("BMES"), lattice(3, [(0, 1, "X"), (2, 3, "OTHER")])
    for named, found in ((None, ["X", "OTHER"]), (frozenset({"OTHER"}), ["OTHER"]), (frozenset({"Y"}), [])):
        wanted = Selection({} if named else {"Y": "Y"}, min_score=0.99, named=named)  # X is silent
        spans = decode_spans(made, np.zeros((1, 3, len(made.tags))), [one], wanted)[0]
        assert [s.label for s in spans if s.forced] == found
