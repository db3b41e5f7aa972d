"""SourceMix: how often each of several corpora is read in an epoch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class SourceMix:
    """Selects the sentences of each epoch, which depend only on (seed, epoch).

    An epoch has w times as many sentences of a corpus with weight w as the corpus has. If w is not a whole number, the
    remaining sentences are taken from a shuffled order, which continues from epoch to epoch, so that all sentences are
    read equally often.

    Args:
        n_sentences: the size of each corpus; sentences are numbered across all corpora.
        weights: the weight of each corpus.
    """

    def __init__(self, n_sentences: Sequence[int], weights: Sequence[float], *, seed: int):
        self._n_sentences, self._seed = list(n_sentences), seed
        self._n_read = [round(n * weight) for n, weight in zip(n_sentences, weights, strict=True)]
        self._last: tuple[int, np.ndarray] | None = None

    def sentences(self, epoch: int) -> np.ndarray:
        """int64[n]: the numbers of the sentences of an epoch (from 0); a sentence may occur several times."""
        if self._last is None or self._last[0] != epoch:
            self._last = epoch, self._sentences(epoch)
        return self._last[1]

    def _sentences(self, epoch: int) -> np.ndarray:
        first = np.cumsum([0, *self._n_sentences])
        return np.concatenate(
            [
                first[k] + self._of_source(k, n, n_read, epoch)
                for k, (n, n_read) in enumerate(zip(self._n_sentences, self._n_read, strict=True))
            ]
        )

    def _of_source(self, source: int, n: int, n_read: int, epoch: int) -> np.ndarray:
        if n == n_read:
            return np.arange(n)
        begin = epoch * n_read
        passes = range(begin // n, (begin + n_read - 1) // n + 1) if n_read else range(0)
        orders = [np.random.default_rng((self._seed, source, k)).permutation(n) for k in passes]
        walk = np.concatenate(orders) if orders else np.zeros(0, np.int64)
        start = begin - begin // n * n
        return walk[start : start + n_read].astype(np.int64)
