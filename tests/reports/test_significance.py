"""Paired bootstrap: against its definition on small sets, and what it must say in clear cases."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cige.data.sentence import Span
from cige.reports.significance import paired_bootstrap, sentence_counts


def f1(rows: np.ndarray) -> float:
    gold, predicted, both = rows.sum(0)
    return 2 * both / max(1, gold + predicted)


def exact_p(better: np.ndarray, other: np.ndarray) -> float:
    """Over every ordered resample of a tiny set, each as likely as another."""
    n = better.shape[1]
    draws = [list(d) for d in itertools.product(range(n), repeat=n)]
    behind = [np.mean([f1(s[d]) for s in better]) <= np.mean([f1(s[d]) for s in other]) for d in draws]
    return float(np.mean(behind))


def test_counts_of_sentences():
    gold = [[Span(0, 2, "A"), Span(3, 5, "B")], []]
    predicted = [[Span(0, 2, "A"), Span(3, 5, "A"), Span(6, 7, "A")], [Span(0, 1, "A")]]
    assert sentence_counts(gold, predicted).tolist() == [[2, 3, 1], [0, 1, 0]]
    assert sentence_counts([], []).shape == (0, 3)


@pytest.mark.parametrize("seed", range(4))
def test_equals_the_exact_distribution_on_tiny_sets(seed):
    rng = np.random.default_rng(seed)

    def system(skill: float) -> np.ndarray:
        gold = np.full((2, 4), 3)
        right = rng.binomial(3, skill, (2, 4))
        return np.stack([gold, np.full((2, 4), 3), right], 2)

    better, other = system(0.8), system(0.6)
    assert paired_bootstrap(better, other, n_resamples=20_000) == pytest.approx(exact_p(better, other), abs=0.02)


def test_a_clear_lead_and_none():
    gold = np.tile([[1, 1, 1]], (1, 200, 1))
    worse = gold.copy()
    worse[:, :60, 2] = 0
    assert paired_bootstrap(gold, worse) < 0.001
    assert paired_bootstrap(gold, gold) == 1.0
    assert paired_bootstrap(worse, gold) == 1.0


def test_the_same_seed_gives_the_same_p_and_unpaired_sets_are_refused():
    rng = np.random.default_rng(0)
    a, b = (np.stack([np.full((1, 30), 2), np.full((1, 30), 2), rng.integers(0, 3, (1, 30))], 2) for _ in range(2))
    assert paired_bootstrap(a, b, seed=3) == paired_bootstrap(a, b, seed=3)
    with pytest.raises(ValueError, match="30 sentences against 29"):
        paired_bootstrap(a, b[:, :29])
