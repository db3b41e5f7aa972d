"""Chains of tags in C, at every level that this processor has, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runtime_forms import LEVELS

from cige.data.sentence import Span
from cige.data.tags import allowed_transitions, tag_set
from cige.lattice.lattice import Lattice
from cige.nn.crf_numpy import NumpyCRF
from cige.runtime import native
from cige.runtime.native_crf import LabelFamilies, NativeCRF
from cige.tagging.best_spans import best_spans, close
from cige.tagging.candidates import candidate_spans, span_probability
from cige.tagging.selection import Selection


def chains(rng: np.random.Generator, n_labels: int, scheme: str, *, constrained: bool) -> tuple[NumpyCRF, list[str]]:
    tags = tag_set([f"T{k}" for k in range(n_labels)], scheme)
    masks = allowed_transitions(tags) if constrained else [np.ones(n, bool) for n in (len(tags),) * 2]
    start, between, end = masks if constrained else (masks[0], np.ones((len(tags),) * 2, bool), masks[1])
    scores = [np.where(mask, rng.normal(size=mask.shape), -np.inf) for mask in (start, between, end)]
    return NumpyCRF(start=scores[0], transitions=scores[1], end=scores[2]), tags


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_labels=st.sampled_from([1, 2, 3, 25]),
    scheme=st.sampled_from(["BMES", "BIOES", "BIO"]),
    constrained=st.booleans(),
    lengths=st.lists(st.integers(0, 30), min_size=1, max_size=5),
    height=st.sampled_from([0.1, 3.0, 60.0, 2000.0]),
    share_closed=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    limit=st.sampled_from([None, 1, 3]),
)
def test_the_chain_is_that_of_numpy(seed, n_labels, scheme, constrained, lengths, height, share_closed, limit):
    rng = np.random.default_rng(seed)
    crf, tags = chains(rng, n_labels, scheme, constrained=constrained)
    emissions = (height * rng.normal(size=(len(lengths), max(1, *lengths, 1), len(tags)))).astype(np.float32)
    rows = np.concatenate([emissions[b, :n] for b, n in enumerate(lengths)])
    n_chars = np.array(lengths, np.int32)
    limits = {} if limit is None else {f"T{k}": limit + k for k in range(0, n_labels, 2)}
    is_closed = rng.random(len(rows)) < share_closed
    lattices, first = [], 0
    for n in lengths:
        closed = tuple((k, k + 1) for k in np.flatnonzero(is_closed[first : first + n]).tolist())
        lattices.append(Lattice("一" * n, np.zeros((0, 3), np.int32), n_base=0, closed=closed))
        first += n
    shut = close(emissions, lattices, tags)
    expected = best_spans(crf, shut, lattices, tags=tags, scheme=scheme, max_lengths=limits)
    marginals = crf.marginals(shut, lengths)
    tag_ids = {tag: k for k, tag in enumerate(tags)}
    for level in LEVELS:
        scores = {"start": crf.start, "transitions": crf.transitions, "end": crf.end}
        chain = NativeCRF(**scores, tags=tags, scheme=scheme, max_lengths=limits, library=native.load(level))
        found, n_spans = chain.spans(rows, n_chars, is_closed if share_closed else None)
        assert n_spans.tolist() == [len(spans) for spans in expected]
        listed = iter(found.tolist())
        for b, spans in enumerate(expected):
            for span in spans:
                start, end, label, _, score = next(listed)
                assert (start, end, chain.labels[label]) == (span.start, span.end, span.label)
                probability = span_probability(marginals, b, span, lengths[b], tag_ids=tag_ids, scheme=scheme)
                assert score == pytest.approx(probability, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_labels=st.integers(1, 4),
    scheme=st.sampled_from(["BMES", "BIOES", "BIO"]),
    constrained=st.booleans(),
    lengths=st.lists(st.integers(0, 12), min_size=1, max_size=4),
    height=st.sampled_from([0.1, 3.0, 60.0, 2000.0]),
    n_families=st.integers(1, 3),
    threshold=st.sampled_from([1e-6, 0.01, 0.4]),
    limit=st.sampled_from([None, 2]),
)
def test_labels_that_are_reported_as_one(
    seed, n_labels, scheme, constrained, lengths, height, n_families, threshold, limit
):
    """Scores of the best spans are sums over a family, and all spans above a threshold are found."""
    rng = np.random.default_rng(seed)
    crf, tags = chains(rng, n_labels, scheme, constrained=constrained)
    emissions = (height * rng.normal(size=(len(lengths), max(1, *lengths, 1), len(tags)))).astype(np.float32)
    rows = np.concatenate([emissions[b, :n] for b, n in enumerate(lengths)])
    n_chars = np.array(lengths, np.int32)
    limits = {} if limit is None else {"T0": limit}
    families: dict[str, list[str]] = {}
    for k in range(n_labels):
        if family := rng.integers(n_families + 1):  # else it is not reported
            families.setdefault(f"F{family}", []).append(f"T{k}")
    of_labels = Selection({label: name for name, own in families.items() for label in own}).max_lengths(limits)
    lattices = [Lattice("一" * n, np.zeros((0, 3), np.int32), n_base=0) for n in lengths]
    best = best_spans(crf, emissions, lattices, tags=tags, scheme=scheme, max_lengths=of_labels)
    marginals, tag_ids = crf.marginals(emissions, lengths), {tag: k for k, tag in enumerate(tags)}
    scores = {"start": crf.start, "transitions": crf.transitions, "end": crf.end}
    for level in LEVELS:
        chain = NativeCRF(**scores, tags=tags, scheme=scheme, max_lengths=limits, library=native.load(level))
        found, n_spans = chain.spans(rows, n_chars, None, LabelFamilies(families, None, chain.labels, chain.library))
        listed = [(s.start, s.end, chain.labels.index(s.label)) for spans in best for s in spans]
        assert found[["start", "end", "label"]].tolist() == listed
        of_sentence = np.repeat(np.arange(len(lengths)), n_spans)
        for b, (start, end, number, _, score) in zip(of_sentence.tolist(), found.tolist(), strict=True):
            label = chain.labels[number]
            own = next((labels for labels in families.values() if label in labels), [label])
            each = (
                span_probability(marginals, b, Span(start, end, x), lengths[b], tag_ids=tag_ids, scheme=scheme)
                for x in own
            )
            assert score == pytest.approx(min(1.0, sum(each)), abs=1e-9)
        thresholds = {name: threshold * (1 + k) for k, name in enumerate(families)}
        all_of = LabelFamilies(families, thresholds, chain.labels, chain.library)
        found, n_spans = chain.spans(rows, n_chars, None, all_of)
        listed = iter(found.tolist())
        for b, n in enumerate(n_spans.tolist()):
            got = {(s, e, all_of.names[k]): p for s, e, k, _, p in (next(listed) for _ in range(n))}
            expected = {
                (s, e, name): p
                for name, labels in families.items()
                for s, e, p in candidate_spans(
                    marginals,
                    b,
                    lengths[b],
                    labels,
                    threshold=thresholds[name] * (1 - 1e-7),
                    tags=tags,
                    scheme=scheme,
                    max_lengths=of_labels,
                )
            }
            assert len(got) == n and got.keys() <= expected.keys()
            assert all(p < thresholds[key[2]] * (1 + 1e-7) for key, p in expected.items() if key not in got)
            assert all(p == pytest.approx(expected[key], abs=1e-9) for key, p in got.items())


@pytest.mark.parametrize("level", LEVELS)
def test_a_chain_that_forbids_all_but_an_unlikely_way(level):
    """Scores e^-600 below the best are not lost."""
    tags = tag_set(["A"], "BMES")
    start, between, end = (np.where(mask, 0.0, -np.inf) for mask in allowed_transitions(tags))
    emissions = np.zeros((2, len(tags)), np.float32)
    emissions[0, tags.index("B-A")], emissions[1, tags.index("M-A")] = 600, 600  # M may not be last
    scores = {"start": start, "transitions": between, "end": end}
    chain = NativeCRF(**scores, tags=tags, scheme="BMES", max_lengths={}, library=native.load(level))
    found, _ = chain.spans(emissions, np.array([2], np.int32))
    assert found[["start", "end"]].tolist() == [(0, 2)] and found["score"][0] == pytest.approx(1)
