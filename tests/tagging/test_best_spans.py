"""The best entities that are allowed, against all tag sequences tried one by one."""

from itertools import pairwise, product

import numpy as np
import pytest

from cige.data.sentence import Span
from cige.data.tags import allowed_transitions, spans_to_tags, tag_set, tags_to_spans
from cige.lattice.lattice import Lattice
from cige.nn.crf_numpy import NumpyCRF
from cige.tagging.best_spans import best_spans, best_within_lengths, close

NO_WORDS = np.zeros((0, 3), np.int32)


def lattices(*lengths: int) -> list[Lattice]:
    return [Lattice(text="字" * n, words=NO_WORDS, n_base=0) for n in lengths]


def crf_of(tags: list[str]) -> NumpyCRF:
    start, between, end = (np.where(allowed, 0.0, -np.inf) for allowed in allowed_transitions(tags))
    return NumpyCRF(start=start, transitions=between, end=end)


def emissions_of(text: str, spans: list[Span], tags: list[str], scheme: str = "BMES") -> np.ndarray:
    """float[1, T, L] in which the tags of `spans` are by far the best."""
    emissions = np.zeros((1, len(text), len(tags)))
    for place, tag in enumerate(spans_to_tags(len(text), spans, scheme)):
        emissions[0, place, tags.index(tag)] = 9
    return emissions


def brute_force(crf: NumpyCRF, emissions: np.ndarray, tags: list[str], scheme: str) -> list[Span]:
    def score(path):
        unary = sum(emissions[0, t, k] for t, k in enumerate(path))
        return crf.start[path[0]] + crf.end[path[-1]] + unary + sum(crf.transitions[a, b] for a, b in pairwise(path))

    best = max(product(range(len(tags)), repeat=emissions.shape[1]), key=score)
    return tags_to_spans([tags[k] for k in best], scheme)


@pytest.mark.parametrize("scheme", ["BMES", "BIO"])
def test_no_entity_overlaps_a_closed_stretch_and_the_rest_is_the_best_there_is(scheme):
    tags, rng = tag_set(["X", "Y"], scheme), np.random.default_rng(0)
    crf = crf_of(tags)
    for k in range(30):
        start = int(rng.integers(0, 4))
        lattice = Lattice("字" * 4, NO_WORDS, 0, closed=((start, int(rng.integers(start + 1, 5))),))
        emissions = rng.normal(size=(1, 4, len(tags))) * 2
        shut = close(emissions, [lattice], tags)
        (found,) = best_spans(crf, shut, lattices(4), tags=tags, scheme=scheme, max_lengths={})
        assert found == brute_force(crf, shut, tags, scheme), k
        assert all(s.end <= a or b <= s.start for s in found for a, b in lattice.closed)
        untouched = [t for t in range(4) if not any(a <= t < b for a, b in lattice.closed)]
        assert np.array_equal(shut[:, untouched], emissions[:, untouched])
        marginals = crf.marginals(shut, [4])
        assert np.isfinite(marginals.log_z).all()


def test_where_nothing_is_closed_nothing_is_copied():
    emissions = np.zeros((1, 2, 5))
    assert close(emissions, [Lattice("甲乙", NO_WORDS, 0)], tag_set(["X"])) is emissions


def test_what_is_too_long_gives_way_to_something_else():
    tags, text = tag_set(["LOC", "ORG"]), "北京市朝阳区望京路"
    emissions = emissions_of(text, [Span(0, 9, "ORG")], tags)
    for spans in ([Span(0, 3, "LOC"), Span(3, 6, "LOC"), Span(6, 9, "LOC")],):
        emissions += 0.9 * emissions_of(text, spans, tags)
    arguments = {"tags": tags, "scheme": "BMES"}
    crf = crf_of(tags)
    assert best_spans(crf, emissions, lattices(9), **arguments, max_lengths={}) == [[Span(0, 9, "ORG")]]
    assert best_spans(crf, emissions, lattices(9), **arguments, max_lengths={"ORG": 9}) == [[Span(0, 9, "ORG")]]
    parts = [Span(0, 3, "LOC"), Span(3, 6, "LOC"), Span(6, 9, "LOC")]
    assert best_spans(crf, emissions, lattices(9), **arguments, max_lengths={"ORG": 8}) == [parts]
    short = {"ORG": 1, "LOC": 1}
    assert all(s.end - s.start == 1 for s in best_spans(crf, emissions, lattices(9), **arguments, max_lengths=short)[0])


def test_only_the_sentence_with_a_long_entity_is_read_again():
    tags = tag_set(["X"])
    emissions = np.concatenate(
        [emissions_of("甲乙丙", spans, tags) for spans in ([Span(0, 3, "X")], [Span(0, 2, "X")])]
    )
    found = best_spans(crf_of(tags), emissions, lattices(3, 3), tags=tags, scheme="BMES", max_lengths={"X": 2})
    assert found[1] == [Span(0, 2, "X")] and all(span.end - span.start <= 2 for span in found[0])


def test_a_row_of_names_that_is_one_name_to_the_model_is_cut_where_that_is_best():
    tags = tag_set(["LOC"])
    emissions = emissions_of("北京上海" * 3, [Span(0, 12, "LOC")], tags)
    emissions += 0.4 * emissions_of("北京上海" * 3, [Span(k, k + 4, "LOC") for k in (0, 4, 8)], tags)
    (found,) = best_spans(crf_of(tags), emissions, lattices(12), tags=tags, scheme="BMES", max_lengths={"LOC": 9})
    assert found in ([Span(0, 8, "LOC"), Span(8, 12, "LOC")], [Span(0, 4, "LOC"), Span(4, 12, "LOC")])


@pytest.mark.parametrize("scheme", ["BMES", "BIOES", "BIO"])
def test_the_best_of_all_readings_with_legal_lengths(scheme):
    """Against all well-formed tag sequences, with blocked spans and with spans that may have any length."""
    labels, rng = ["X", "Y"], np.random.default_rng(2)
    tags = tag_set(labels, scheme)
    readings = [list(spans) for spans in well_formed(5, labels)]
    n_cut = 0
    for _ in range(60):
        crf = crf_of(tags)
        crf.transitions += rng.normal(size=crf.transitions.shape)
        crf.start += rng.normal(size=crf.start.shape)
        crf.end += rng.normal(size=crf.end.shape)
        emissions = 2 * rng.normal(size=(5, len(tags)))
        limits = {"X": int(rng.integers(1, 4)), "Y": int(rng.integers(1, 6))}
        exempt, blocked = [int(rng.integers(0, 5))], {(int(rng.integers(0, 2)), int(rng.integers(2, 6)))}
        found = best_within_lengths(
            crf, emissions, tags=tags, scheme=scheme, max_lengths=limits, blocked=blocked, exempt=exempt
        )
        legal = [
            spans
            for spans in readings
            if all(s.end - s.start <= limits[s.label] or s.start in exempt for s in spans)
            and not blocked & {(s.start, s.end) for s in spans}
        ]
        scores = {spans: score_of(crf, emissions, spans_to_tags(5, spans, scheme), tags) for spans in map(tuple, legal)}
        assert found == list(max(scores, key=scores.get))
        n_cut += len(legal) < len(readings)
    assert n_cut > 30


def well_formed(n_chars, labels, first=0):
    """All lists of disjoint spans in [first, n_chars)."""
    yield ()
    for start in range(first, n_chars):
        for end in range(start + 1, n_chars + 1):
            for label in labels:
                for rest in well_formed(n_chars, labels, end):
                    yield (Span(start, end, label), *rest)


def score_of(crf, emissions, sequence, tags):
    path = [tags.index(tag) for tag in sequence]
    unary = sum(emissions[t, k] for t, k in enumerate(path))
    return crf.start[path[0]] + crf.end[path[-1]] + unary + sum(crf.transitions[a, b] for a, b in pairwise(path))


@pytest.mark.parametrize("scheme", ["BMES", "BIO"])
def test_every_length_is_held(scheme):
    tags, rng = tag_set(["X", "Y"], scheme), np.random.default_rng(1)
    for _ in range(50):
        emissions = rng.normal(size=(2, 12, len(tags)))
        emissions[:, :, 1:] += 1.5  # entities nearly everywhere
        limits = {"X": int(rng.integers(1, 4)), "Y": int(rng.integers(1, 4))}
        found = best_spans(crf_of(tags), emissions, lattices(12, 7), tags=tags, scheme=scheme, max_lengths=limits)
        assert all(
            s.end - s.start <= limits[s.label] and s.end <= n
            for n, row in zip((12, 7), found, strict=True)
            for s in row
        )
