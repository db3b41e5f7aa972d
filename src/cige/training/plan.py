"""BatchPlan: which sentences every step of every epoch reads, known before training starts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

import numpy as np

from cige.data.budget import batches_by_budget


class BatchPlan:
    """The batches of a whole run, as keys (epoch, index) of a TrainingSet; a batch sampler for a DataLoader.

    Each epoch shuffles with (seed, epoch). With `pool_batches` the shuffled sentences are taken in pools of about so
    many batches, sorted by length within a pool (little padding), cut into batches, and the batches shuffled. How
    many batches an epoch has differs a little from epoch to epoch, since the node budget cuts where it must.

    Args:
        n_nodes: int64[n], nodes of each sentence.
        n_epochs: epochs of the run.
        batch_size: sentences a batch, at most.
        max_pairs: node pairs a batch, at most (`batches_by_budget`).
        pool_batches: see above; 0 for plain shuffling.
    """

    def __init__(
        self, n_nodes: np.ndarray, *, n_epochs: int, batch_size: int, max_pairs: int, pool_batches: int, seed: int
    ):
        self._n_nodes = n_nodes
        self._batch_size = batch_size
        self._max_pairs = max_pairs
        self._pool_batches = pool_batches
        self._seed = seed
        self.n_epochs = n_epochs
        self.steps_after = np.cumsum([len(self.epoch(e)) for e in range(n_epochs)]).tolist()
        """Steps done at the end of each epoch."""

    def __len__(self) -> int:
        return self.steps_after[-1]

    def __iter__(self) -> Iterator[list[tuple[int, int]]]:
        for epoch in range(self.n_epochs):
            for batch in self.epoch(epoch):
                yield [(epoch, index) for index in batch]

    def epoch(self, epoch: int) -> list[list[int]]:
        """The batches of one epoch (from 0), as sentence numbers."""
        rng = np.random.default_rng((self._seed, epoch))
        order = rng.permutation(len(self._n_nodes))
        if not self._pool_batches:
            return self._cut(order)
        pool_size = self._pool_batches * self._batch_size
        batches: list[list[int]] = []
        for start in range(0, len(order), pool_size):
            pool = order[start : start + pool_size]
            batches += self._cut(pool[np.argsort(self._n_nodes[pool], kind="stable")])
        return [batches[k] for k in rng.permutation(len(batches))]

    def epoch_of(self, step: int) -> float:
        """Epochs done after `step` steps, with the fraction of the one under way."""
        done = bisect_right(self.steps_after, step)
        if done == self.n_epochs:
            return float(done)
        first = self.steps_after[done - 1] if done else 0
        return done + (step - first) / (self.steps_after[done] - first)

    def padding_share(self, epoch: int = 0) -> float:
        """Share of node pairs computed on padding in an epoch, 0..1."""
        real = padded = 0
        for batch in self.epoch(epoch):
            n = self._n_nodes[batch]
            real += int((n * n).sum())
            padded += len(n) * int(n.max()) ** 2
        return 1 - real / padded if padded else 0.0

    def _cut(self, order: np.ndarray) -> list[list[int]]:
        cuts = batches_by_budget(
            self._n_nodes[order].tolist(), max_sentences=self._batch_size, max_pairs=self._max_pairs
        )
        return [order[batch].tolist() for batch in cuts]
