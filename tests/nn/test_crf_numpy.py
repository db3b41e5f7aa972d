"""Viterbi and marginals in NumPy against brute force over every tag sequence, and against the CRF that is trained."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cige.data.tags import allowed_transitions, tag_set
from cige.nn.crf import CRF
from cige.nn.crf_numpy import MANY, NumpyCRF

TAGS = tag_set(["X"])
FREE = (np.ones(len(TAGS), bool), np.ones((len(TAGS), len(TAGS)), bool), np.ones(len(TAGS), bool))
CONSTRAINTS = {"free": FREE, "constrained": allowed_transitions(TAGS)}


def random_crf(rng: np.random.Generator, allowed: tuple) -> NumpyCRF:
    start, transitions, end = (np.where(mask, rng.normal(size=mask.shape), -np.inf) for mask in allowed)
    return NumpyCRF(start=start, transitions=transitions, end=end)


def all_scores(crf: NumpyCRF, emissions: np.ndarray) -> dict[tuple[int, ...], float]:
    """Score of every sequence over one sentence [T, L]."""
    scores = {}
    for path in product(range(emissions.shape[1]), repeat=len(emissions)):
        total = crf.start[path[0]] + crf.end[path[-1]] + sum(emissions[t, tag] for t, tag in enumerate(path))
        scores[path] = total + sum(crf.transitions[a, b] for a, b in pairwise(path))
    return scores


@pytest.mark.parametrize("allowed", CONSTRAINTS.values(), ids=CONSTRAINTS.keys())
@given(
    lengths=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    seed=st.integers(0, 10_000),
    height=st.sampled_from([3, 2000]),  # the sums of the higher ones underflow unless they are made of logarithms
)
def test_best_path_and_marginals_equal_brute_force(allowed, lengths, seed, height):
    rng = np.random.default_rng(seed)
    crf = random_crf(rng, allowed)
    emissions = rng.normal(size=(len(lengths), max(lengths) + 1, len(TAGS))) * height  # padding holds scores too
    paths = crf.decode(emissions, lengths)
    marginals = crf.marginals(emissions, lengths)
    for row, n in enumerate(lengths):
        scores = all_scores(crf, emissions[row, :n])
        log_z = np.logaddexp.reduce(list(scores.values()))
        assert tuple(paths[row]) == max(scores, key=scores.__getitem__)
        assert marginals.log_z[row] == pytest.approx(log_z, abs=1e-10)
        for start in range(n):
            for length in range(1, n - start + 1):
                segment = paths[row][start : start + length]
                same = [s for p, s in scores.items() if list(p[start : start + length]) == segment]
                expected = np.exp(np.logaddexp.reduce(same) - log_z)
                assert marginals.probability(row, start, segment) == pytest.approx(expected, abs=1e-10)


def test_the_probabilities_of_all_stretches_sum_to_one():
    rng = np.random.default_rng(0)
    crf = random_crf(rng, CONSTRAINTS["constrained"])
    emissions = rng.normal(size=(1, 6, len(TAGS)))
    with np.errstate(invalid="raise"):
        marginals = crf.marginals(emissions, [6])
    for start in range(5):
        total = sum(marginals.probability(0, start, tags) for tags in product(range(len(TAGS)), repeat=2))
        assert total == pytest.approx(1, abs=1e-10)


def torch_crf(tags: list[str], *, seed: int = 0) -> CRF:
    torch.manual_seed(seed)
    crf = CRF(n_tags=len(tags), allowed=allowed_transitions(tags))
    for parameter in crf.parameters():
        torch.nn.init.normal_(parameter)
    return crf


@pytest.mark.parametrize("scheme", ["BMES", "BIO", "BIOES"])
def test_it_is_the_crf_that_was_trained(scheme):
    tags = tag_set(["LOC", "ORG", "PER"], scheme)
    crf = torch_crf(tags)
    emissions, lengths = torch.randn(20, 30, len(tags)) * 2, torch.randint(1, 31, (20,))
    emissions.requires_grad_()
    own = crf.in_numpy()
    arrays = emissions.detach().numpy()
    assert own.decode(arrays, lengths.tolist()) == crf.decode(emissions, lengths)
    log_z = crf.log_partition(emissions, lengths)
    marginals = own.marginals(arrays, lengths.tolist())
    np.testing.assert_allclose(marginals.log_z, log_z.detach().numpy(), atol=1e-4)
    (of_one_tag,) = torch.autograd.grad(log_z.sum(), emissions)  # the gradient of log Z is p(tag of a character)
    for row, n in enumerate(lengths.tolist()):
        for t in range(0, n, 7):
            found = [marginals.probability(row, t, [tag]) for tag in range(len(tags))]
            np.testing.assert_allclose(found, of_one_tag[row, t].numpy(), atol=1e-5)


def test_extreme_scores_stay_finite():
    own = torch_crf(TAGS).in_numpy()
    emissions = np.random.default_rng(1).normal(size=(2, 6, len(TAGS))) * 300
    marginals = own.marginals(emissions, [6, 4])
    assert np.isfinite(marginals.log_z).all()
    for row, path in enumerate(own.decode(emissions, [6, 4])):
        assert marginals.probability(row, 0, path) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("lengths", [[7], [5, 3], [6, 6, 1], [9, 4, 2, 7, 1]])
@pytest.mark.parametrize("allowed", CONSTRAINTS.values(), ids=CONSTRAINTS.keys())
def test_few_and_many_sentences_are_read_alike(lengths, allowed, monkeypatch):
    rng = np.random.default_rng(3)
    own = random_crf(rng, allowed)
    emissions = rng.normal(size=(len(lengths), max(lengths), len(TAGS))) * 5
    emissions[0, 1:3, 1:] = -np.inf  # as in a closed stretch
    found = {}
    for many in (1, 100):
        monkeypatch.setattr("cige.nn.crf_numpy.MANY", many)
        marginals = own.marginals(emissions, lengths)
        shares = [marginals.tag_probabilities(row)[:n] for row, n in enumerate(lengths)]
        found[many] = own.decode(emissions, lengths), marginals.log_z, np.concatenate(shares)
    assert found[1][0] == found[100][0]
    np.testing.assert_allclose(found[1][1], found[100][1], atol=1e-9)
    np.testing.assert_allclose(found[1][2], found[100][2], atol=1e-12)


def test_probabilities_that_underflow_are_summed_as_logarithms():
    own = random_crf(np.random.default_rng(4), CONSTRAINTS["constrained"])
    emissions = np.zeros((1, 8, len(TAGS)))
    emissions[0, :, TAGS.index("M-X")] = 2000.0  # of which a sentence cannot consist
    assert own._scaled(emissions, np.array([7])) is None
    assert np.isfinite(own.marginals(emissions, [8]).log_z).all()


def test_an_empty_sentence_has_no_tags():
    own = torch_crf(TAGS).in_numpy()
    emissions = np.zeros((2, 3, len(TAGS)), np.float32)
    assert own.decode(emissions, [0, 3])[0] == []
    assert own.decode(emissions[:1, :1], [0]) == [[]]


def test_padding_changes_nothing():
    own = torch_crf(TAGS).in_numpy()
    rng = np.random.default_rng(2)
    emissions = rng.normal(size=(1, 5, len(TAGS)))
    padded = np.concatenate([emissions, np.full((1, 4, len(TAGS)), np.nan)], 1)
    assert own.decode(emissions, [5]) == own.decode(padded, [5])
    found, expected = own.marginals(padded, [5]), own.marginals(emissions, [5])
    assert found.log_z[0] == expected.log_z[0]
    assert found.probability(0, 2, [0, 0]) == expected.probability(0, 2, [0, 0])


def test_two_tags_or_one_are_decoded_for_many_sentences_too():
    rng = np.random.default_rng(2)
    for n_tags in (1, 2):
        start, end, transitions = (rng.normal(size=shape) for shape in (n_tags, n_tags, (n_tags, n_tags)))
        crf = NumpyCRF(start=start, transitions=transitions, end=end)
        emissions, lengths = rng.normal(size=(MANY, 5, n_tags)), [5, 3, 1, 4]
        alone = [crf.decode(emissions[k : k + 1], [n])[0] for k, n in enumerate(lengths)]
        assert crf.decode(emissions, lengths) == alone
