"""Differences between systems: the parts against their definitions, what must come out in clear cases, and, on
simulated tables of equal systems, how rarely any is found."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.accuracy.significance import Tables, case, points_per_skill
from cige.data.sentence import Span
from cige.entities.scores import score
from cige.reports.significance import Difference, all_differences, holm, sentence_counts


def f1(rows: np.ndarray) -> float:
    gold, predicted, both = rows.sum(0)
    return 2 * both / max(1, gold + predicted)


def made(skill: float, n_seeds: int, n_sentences: int, rng: np.random.Generator, *, seed_sd: float = 0.0) -> np.ndarray:
    """int[n_seeds, n_sentences, 3]: three entities per sentence; each seed finds its own share of them."""
    shares = np.clip(skill + seed_sd * rng.standard_normal((n_seeds, 1)), 0, 1)
    right = rng.binomial(3, shares, (n_seeds, n_sentences))
    return np.stack([np.full_like(right, 3), np.full_like(right, 3), right], 2)


def test_counts_of_sentences():
    gold = [[Span(0, 2, "A"), Span(3, 5, "B")], []]
    predicted = [[Span(0, 2, "A"), Span(3, 5, "A"), Span(6, 7, "A")], [Span(0, 1, "A")]]
    assert sentence_counts(gold, predicted).tolist() == [[2, 3, 1], [0, 1, 0]]
    assert sentence_counts([], []).shape == (0, 3)


def test_counts_are_those_of_the_scores_for_entities_with_gaps():
    gold = [[Span(0, 7, "ORG", ((0, 2), (5, 7))), Span(0, 7, "ORG")], [Span(0, 5, "ORG", ((0, 2), (4, 5)))]]
    predicted = [[Span(0, 7, "ORG", ((0, 3), (5, 7)))], [Span(0, 5, "ORG", ((0, 2), (4, 5)))]]
    counts = sentence_counts(gold, predicted)
    assert counts.tolist() == [[2, 1, 0], [1, 1, 1]]
    assert f1(counts) == score(gold, predicted).f1


@pytest.mark.parametrize("seed", range(3))
def test_with_one_seed_the_error_is_that_of_every_resample_of_the_sentences(seed):
    rng = np.random.default_rng(seed)
    a, b = made(0.8, 1, 5, rng), made(0.6, 1, 5, rng)
    draws = [list(d) for d in itertools.product(range(5), repeat=5)]  # each as likely as another
    exact = np.var([f1(a[0, d]) - f1(b[0, d]) for d in draws]) * 5 / 4
    found = all_differences([a, b], n_resamples=20_000)[0, 1]
    assert found.value == pytest.approx(f1(a[0]) - f1(b[0])) and not found.covers_seeds
    half, quantile = (found.high - found.low) / 2, 2.776445  # of Student's t with 4 degrees of freedom, 97.5%
    assert half / quantile == pytest.approx(np.sqrt(exact), rel=0.03)


def test_where_seeds_vary_far_more_than_sentences_it_is_the_t_test_over_seeds():
    from scipy import stats

    n = 2000
    shares = [[0.70, 0.76, 0.79, 0.71], [0.66, 0.72, 0.75, 0.67]]  # of equal spread, so that pooling changes nothing
    places = np.arange(n) / n
    systems = [
        np.stack([np.stack([np.ones(n), np.ones(n), places < share], 1) for share in of_system]).astype(np.int64)
        for of_system in shares
    ]
    found = all_differences(systems, n_resamples=1000)[0, 1]
    assert found.covers_seeds and found.value == pytest.approx(0.04)
    assert found.p_value == pytest.approx(stats.ttest_ind(*shares).pvalue, rel=0.05)


def test_seeds_that_vary_widen_the_interval_and_more_seeds_narrow_it():
    rng = np.random.default_rng(0)
    steady = [made(skill, 3, 300, rng) for skill in (0.70, 0.64)]
    varied = [made(skill, 3, 300, rng, seed_sd=0.05) for skill in (0.70, 0.64)]
    more = [made(skill, 12, 300, rng, seed_sd=0.05) for skill in (0.70, 0.64)]
    widths = [found.high - found.low for found in (all_differences(x)[0, 1] for x in (steady, varied, more))]
    assert widths[0] < widths[2] < widths[1]


def test_one_seed_beside_others_is_taken_to_vary_as_they_do():
    rng = np.random.default_rng(1)
    three, one = made(0.7, 3, 300, rng, seed_sd=0.05), made(0.6, 1, 300, rng)
    found = all_differences([three, one])[0, 1]
    alone = all_differences([three[:1], one])[0, 1]
    assert found.covers_seeds and not alone.covers_seeds
    assert found.high - found.low > 1.5 * (alone.high - alone.low)


def test_a_clear_lead_and_none():
    gold = np.tile([[1, 1, 1]], (3, 200, 1))
    worse = gold.copy()
    worse[:, :60, 2] = 0
    found = all_differences([gold, worse])[0, 1]
    assert found.p_value < 0.001 and 0 < found.low < found.value < found.high
    assert found.value == pytest.approx(1 - 0.7)
    same = all_differences([gold, gold.copy()])[0, 1]
    assert same.p_value == 1.0 and same.low < 0 == same.value < same.high  # equal here is not equal everywhere


def test_p_is_never_less_than_the_sentences_allow():
    right, wrong = np.tile([[1, 1, 1]], (1, 4, 1)), np.tile([[1, 1, 0]], (1, 4, 1))
    assert all_differences([right, wrong])[0, 1].p_value == pytest.approx(2 / 2**4)  # a sign test's: 4 of 4


def test_what_cannot_be_compared_is_refused():
    rng = np.random.default_rng(0)
    a, b = made(0.5, 2, 30, rng), made(0.5, 2, 30, rng)
    with pytest.raises(ValueError, match="system 1 has 29 sentences, system 0 30"):
        all_differences([a, b[:, :29]])
    other = b.copy()
    other[:, 3, 0] = 9
    with pytest.raises(ValueError, match="other entities"):
        all_differences([a, other])
    other[0, 3, 0] = b[0, 3, 0]  # then the seeds of one system differ from one another
    for systems in ([other, a], [other]):
        with pytest.raises(ValueError, match=r"a seed of system 0 .* other entities"):
            all_differences(systems)
    assert all_differences([a]) == {}


def test_the_same_counts_give_the_same_answer_in_any_order():
    rng = np.random.default_rng(2)
    systems = [made(skill, 3, 80, rng, seed_sd=0.03) for skill in (0.5, 0.6, 0.7)]
    found, again = all_differences(systems), all_differences(systems)
    assert found == again and list(found) == [(0, 1), (0, 2), (1, 2)]
    turned = all_differences(systems[::-1])
    for (a, b), difference in found.items():
        mirrored: Difference = turned[2 - b, 2 - a]
        assert mirrored.value == pytest.approx(-difference.value)
        assert mirrored.low == pytest.approx(-difference.high) and mirrored.p_value == pytest.approx(difference.p_value)


def test_more_systems_ask_more_of_each_difference():
    rng = np.random.default_rng(3)
    systems = [made(0.7, 3, 200, rng) for _ in range(6)] + [made(0.64, 3, 200, rng)]
    alone = all_differences([systems[0], systems[-1]])[0, 1]
    among = all_differences(systems)[0, 6]
    assert among.p_value > alone.p_value and among.high - among.low > alone.high - alone.low


def holm_by_definition(p_values: list[float], level: float) -> set[int]:
    """The hypotheses that Holm's procedure rejects: from the least p on, until one is above level / (those left)."""
    rejected: set[int] = set()
    for k in sorted(range(len(p_values)), key=p_values.__getitem__):
        if p_values[k] > level / (len(p_values) - len(rejected)):
            break
        rejected.add(k)
    return rejected


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=12), st.floats(0.001, 0.5))
def test_corrected_p_values_reject_what_holms_procedure_rejects(p_values, level):
    corrected = holm(np.array(p_values))
    if not np.isclose(corrected, level, rtol=1e-9).any():
        assert {k for k, p in enumerate(corrected) if p <= level} == holm_by_definition(p_values, level)
    assert (corrected >= p_values).all() and (corrected <= 1).all()


@pytest.mark.parametrize(("n_systems", "n_seeds", "seed_sd"), [(2, 3, 0.0), (2, 3, 2.3), (2, 5, 2.3), (6, 3, 2.3)])
def test_equal_systems_are_rarely_told_apart(n_systems, n_seeds, seed_sd):
    """The benchmark's measurement on fewer tables: 5% of 200, and three standard deviations; 9% before, and more."""
    found = case(n_systems, n_seeds, seed_sd, n_tables=200, slope=16.0, n_resamples=300, seed=5)
    assert found["any p < 0.05"] <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)
    assert found["intervals hold"] >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / 200)
    assert found["before, any p < 0.05"] >= found["any p < 0.05"]
    if seed_sd:
        assert found["before, any p < 0.05"] > 0.12, "the simulation is hard enough for the old test to fail"


def test_a_large_lead_is_found_among_equal_systems():
    found = case(4, 3, 1.0, n_tables=30, slope=16.0, lead=12.0, n_resamples=300, before=False)
    assert found["found"] > 0.9 and found["intervals hold"] > 0.8


def test_the_simulation_has_the_size_and_the_seed_effects_it_names():
    slope = points_per_skill(40)
    assert 12 < slope < 20
    (counts,) = Tables(0).draw(1, 2, skills=np.array([0.55]), seed_sds=np.array([0.0]))
    assert counts.shape == (2, 270, 3) and counts[0, :, 0].sum() == 418 and (counts[0, :, 0] == 0).sum() == 107
    assert (counts[..., 2] <= counts[..., 0]).all() and (counts[..., 2] <= counts[..., 1]).all()
    still, moved = (case(2, 5, sd, n_tables=60, slope=slope, n_resamples=50, before=False) for sd in (0.0, 2.4))
    added = moved["sd over seeds as seen"] ** 2 - still["sd over seeds as seen"] ** 2
    assert np.sqrt(added) == pytest.approx(2.4, rel=0.15)
