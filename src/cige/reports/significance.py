"""Significance tests: differences of F1 with p values and intervals, over seeds and sentences, for a whole table.

The question is about the *systems*: would they still differ with other training seeds and with other sentences of the
same kind? `docs/results.md`, "What the p values mean", explains the test: a hierarchical, paired bootstrap over seeds
and sentences (Koehn 2004, Berg-Kirkpatrick et al. 2012; two crossed factors: Owen 2007, "The pigeonhole bootstrap"),
Student's t with the degrees of freedom that the seeds leave (Satterthwaite 1946), and Holm's correction (1979) over all
pairs of systems. The variance of resampling seeds is known in closed form, so seeds are not drawn. The randomness of a
seed on individual sentences is contained in the variances of both seeds and sentences, and is subtracted from one.

`benchmarks/accuracy/significance.py` measures how often the test distinguishes equal systems.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from cige.entities.scores import Labelled, parts_of

N_RESAMPLES = 10_000
LEVEL = 0.95
_AT_ONCE = 500  # resamples drawn at a time, which limits memory to a few MB per thousand sentences


@dataclass(frozen=True)
class Difference:
    """The F1 of one system minus that of another, with an interval and a p value.

    Attributes:
        value: difference of the mean F1 over seeds, -1..1.
        low, high: interval of the difference; the intervals of all pairs of a table hold simultaneously with 95%
            confidence (Bonferroni).
        p_value: two-sided, after Holm's correction over all pairs of the table, in (0, 1].
        covers_seeds: False if no system of the table has two seeds. Then nothing is known about other seeds, and the
            interval and the p value cover only other sentences, for these trained models.
    """

    value: float
    low: float
    high: float
    p_value: float
    covers_seeds: bool


def sentence_counts(gold: Sequence[Iterable[Labelled]], predicted: Sequence[Iterable[Labelled]]) -> np.ndarray:
    """int64[n, 3]: numbers of entities per sentence that are gold, predicted, and both (in span, parts and type).

    An entity that occurs twice counts once, as in `score`.
    """
    rows = []
    for ours, theirs in zip(gold, predicted, strict=True):
        a, b = ({(x.start, x.end, x.label, parts_of(x)) for x in side} for side in (ours, theirs))
        rows.append((len(a), len(b), len(a & b)))
    return np.array(rows, np.int64).reshape(-1, 3)


def all_differences(
    systems: Sequence[np.ndarray], *, n_resamples: int = N_RESAMPLES, level: float = LEVEL, seed: int = 0
) -> dict[tuple[int, int], Difference]:
    """Every pair (a, b), a < b, of the systems of a table: F1 of a minus F1 of b.

    Args:
        systems: for each system int[n_seeds, n_sentences, 3], the counts of `sentence_counts`. Seeds of two systems are
            not paired, and their number may differ.
        level: simultaneous confidence level of the intervals.

    Raises:
        ValueError: the systems were not scored on the same sentences, which a paired test requires.
    """
    _check_paired(systems)
    pairs = list(combinations(range(len(systems)), 2))
    if not pairs:
        return {}
    from scipy.special import stdtr, stdtrit

    means, of_sentences, own_noise = _resample(systems, n_resamples=n_resamples, seed=seed)
    of_seeds, whole_of_seeds, n_free = _seed_variances(systems, own_noise)
    a, b = np.array(pairs).T
    values = means[a] - means[b]
    sentences = of_sentences[a, a] + of_sentences[b, b] - 2 * of_sentences[a, b]
    sentences = np.maximum(sentences, _one_entity(systems) ** 2)
    variance = sentences + of_seeds[a] + of_seeds[b]
    uncertain = sentences**2 / max(1, systems[0].shape[1] - 1)
    if n_free:
        uncertain += (whole_of_seeds[a] + whole_of_seeds[b]) ** 2 / n_free
    errors, free = np.sqrt(variance), variance**2 / uncertain  # standard errors, degrees of freedom
    p_values = 2 * stdtr(free, -abs(values) / errors)
    p_values = holm(np.maximum(p_values, [_least_p(systems[first], systems[second]) for first, second in pairs]))
    reach = -errors * stdtrit(free, (1 - level) / (2 * len(pairs)))
    return {
        pair: Difference(
            value=float(values[k]),
            low=float(max(-1.0, values[k] - reach[k])),
            high=float(min(1.0, values[k] + reach[k])),
            p_value=float(p_values[k]),
            covers_seeds=n_free > 0,
        )
        for k, pair in enumerate(pairs)
    }


def holm(p_values: np.ndarray) -> np.ndarray:
    """Holm's step-down correction: float[m] p values -> float[m], each at most 1, in the given order.

    Rejecting the hypotheses whose corrected p value is below a level rejects any true hypothesis with at most that
    probability, however the tests depend on each other (Holm 1979).
    """
    order = np.argsort(p_values, kind="stable")
    steps = len(p_values) - np.arange(len(p_values))
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(steps * p_values[order]))
    return corrected


def _check_paired(systems: Sequence[np.ndarray]) -> None:
    for number, counts in enumerate(systems):  # also the first, whose seeds may differ from one another
        n, expected = counts.shape[1], systems[0].shape[1]
        if n != expected:
            raise ValueError(f"system {number} has {n} sentences, system 0 {expected}: the test is paired, by sentence")
        if not (counts[..., 0] == systems[0][:1, :, 0]).all():
            raise ValueError(
                f"a seed of system {number} and the first one of system 0 were scored on other entities: the test is "
                "paired"
            )


def _resample(
    systems: Sequence[np.ndarray], *, n_resamples: int, seed: int
) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """Resample sentences, the same for all systems.

    Returns float[k], the mean F1 of each system over its seeds without resampling; float[k, k], the covariance of these
    means over resamples; and for each system the variance over resamples of a seed's F1 around the mean of the seeds.
    """
    rng = np.random.default_rng(seed)
    n = systems[0].shape[1]
    every = np.concatenate(systems)  # [all seeds of all systems, n, 3]
    flat = every.transpose(1, 0, 2).reshape(n, -1).astype(float)  # [n, seeds * 3]
    f1_of_seeds = np.empty((n_resamples, len(every)))  # F1
    for begin in range(0, n_resamples, _AT_ONCE):
        size = min(_AT_ONCE, n_resamples - begin)
        drawn = rng.integers(n, size=(size, n)) + n * np.arange(size)[:, None]
        times = np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n).astype(float)  # of each sentence
        f1_of_seeds[begin : begin + size] = _f1((times @ flat).reshape(size, -1, 3))
    by_system = np.split(f1_of_seeds, np.cumsum([len(counts) for counts in systems])[:-1], axis=1)  # each [R, S]
    unbiased = n / max(1, n - 1)  # a bootstrap divides by n
    covariance = np.cov([f1.mean(1) for f1 in by_system]).reshape(len(systems), len(systems)) * unbiased
    noise = [
        float((f1 - f1.mean(1, keepdims=True)).var(0).sum() / (f1.shape[1] - 1) * unbiased) if f1.shape[1] > 1 else 0.0
        for f1 in by_system
    ]
    return np.array([_f1(counts.sum(1)).mean() for counts in systems]), covariance, noise


def _seed_variances(systems: Sequence[np.ndarray], own_noise: Sequence[float]) -> tuple[np.ndarray, np.ndarray, int]:
    """The variance that seeds add to each system's mean F1.

    Args:
        own_noise: for each system, the part of the variance between seeds that resampling sentences already covers.

    Returns:
        float[k], the variance without that part; float[k], the variance with it, which is what was estimated and
        therefore decides the degrees of freedom; and the degrees of freedom, which are 0 if no system has two seeds
        (both variances are then 0).
    """
    n_seeds = np.array([len(counts) for counts in systems])
    free = n_seeds - 1
    if not free.sum():
        return np.zeros(len(systems)), np.zeros(len(systems)), 0
    whole = np.array([_f1(counts.sum(1)).var(ddof=1) if len(counts) > 1 else 0.0 for counts in systems])
    alone = whole - np.array(own_noise)
    pooled, pooled_whole = (max(0.0, float((free * variance).sum() / free.sum())) for variance in (alone, whole))
    without = np.maximum(pooled, alone)
    return without / n_seeds, np.maximum(pooled_whole, without) / n_seeds, int(free.sum())


def _one_entity(systems: Sequence[np.ndarray]) -> float:
    """The change of F1 by one entity, which is the smallest uncertainty of any difference."""
    n_counted = np.mean([counts[..., :2].sum() / len(counts) for counts in systems])
    return float(2 / max(2.0, n_counted))


def _least_p(a: np.ndarray, b: np.ndarray) -> float:
    """The smallest possible p value: that of a sign test in which all sentences with a difference favour one system."""
    n_different = int((a.mean(0) != b.mean(0)).any(-1).sum())
    return float(2.0 ** (1 - n_different)) if n_different else 1.0


def _f1(totals: np.ndarray) -> np.ndarray:
    """F1 from totals [..., 3]: gold, predicted, both."""
    return 2 * totals[..., 2] / np.maximum(1, totals[..., 0] + totals[..., 1])
