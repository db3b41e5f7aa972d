"""Is one system better than another? Paired bootstrap over sentences (Koehn 2004; Berg-Kirkpatrick et al. 2012)."""

from __future__ import annotations

import numpy as np

N_RESAMPLES = 10_000
_AT_ONCE = 500  # resamples drawn at a time: bounds memory at a few MB a thousand sentences


def sentence_counts(gold: list, predicted: list) -> np.ndarray:
    """int64[n, 3]: entities of each sentence that are gold, predicted, and both (span and type).

    Args:
        gold, predicted: for each sentence its entities (start, end, label).
    """
    rows = []
    for ours, theirs in zip(gold, predicted, strict=True):
        a, b = ({(x.start, x.end, x.label) for x in side} for side in (ours, theirs))
        rows.append((len(a), len(b), len(a & b)))
    return np.array(rows, np.int64).reshape(-1, 3)


def paired_bootstrap(better: np.ndarray, other: np.ndarray, *, n_resamples: int = N_RESAMPLES, seed: int = 0) -> float:
    """The share of resampled test sets on which `better` is *not* ahead of `other` in F1: a one-sided p value.

    Args:
        better, other: int[n_seeds, n_sentences, 3] counts as of `sentence_counts`; a system's F1 on a resample is the
            mean over its seeds.

    Returns:
        p in (0, 1]; one is added to both counts, so that no finite number of resamples claims certainty.
    """
    if better.shape[1] != other.shape[1]:
        raise ValueError(f"{better.shape[1]} sentences against {other.shape[1]}: the test is paired, by sentence")
    rng = np.random.default_rng(seed)
    n = better.shape[1]
    n_not_ahead = 0
    for begin in range(0, n_resamples, _AT_ONCE):
        drawn = rng.multinomial(n, np.full(n, 1 / n), size=min(_AT_ONCE, n_resamples - begin))  # [R, n]
        n_not_ahead += int((_mean_f1(better, drawn) <= _mean_f1(other, drawn)).sum())
    return (n_not_ahead + 1) / (n_resamples + 1)


def _mean_f1(counts: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """float[R]: F1 of each resample, the mean over seeds."""
    totals = np.einsum("rn,snk->rsk", drawn, counts, optimize=True)  # [R, S, 3]
    f1 = 2 * totals[..., 2] / np.maximum(1, totals[..., 0] + totals[..., 1])
    return f1.mean(1)
