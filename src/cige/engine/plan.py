"""BatchPlan: the examples of every step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cige.engine.settings import BatchConfig
from cige.nn.budget import batches_by_budget

_NO_LIMIT = 2**62


class Place(NamedTuple):
    """The position of a run in its data: epochs done, and batches done of the current epoch.

    If a plan divides epochs into rounds (see BatchPlan), `epoch` counts rounds.
    """

    epoch: int = 0
    batch: int = 0


@dataclass(frozen=True)
class StepPart:
    """The examples that one process reads in a step."""

    place: Place  # after the step
    epoch: int  # of the examples, from 0
    passes: list[list[int]]  # the numbers of the examples of each forward pass
    is_idle: bool = False  # whether this repeats a pass of another process, only because processes wait for each other


class BatchPlan:
    """The batches of any epoch, which depend only on (seed, epoch).

    Each epoch is shuffled. With `pool_batches`, the shuffled examples are divided into pools of about this many
    batches, sorted by size within each pool (to reduce padding) and divided into batches, which are shuffled. The
    number of batches may differ slightly between epochs, since `max_pairs` limits the size of batches.

    Args:
        sizes: int64[n], the size of each example in nodes or tokens, or a function that gives it for an epoch.
        rounds_per_epoch: number of rounds of an epoch, each with other examples; "epoch" then means a round here.
        fill: whether to fill up the last batch to `batch_size` with the first examples of the epoch.
        pass_pairs: maximum number of pairs (examples x longest squared) of a forward pass; larger batches take several.
    """

    def __init__(
        self,
        sizes: np.ndarray | Callable[[int], np.ndarray],
        config: BatchConfig,
        *,
        seed: int,
        fill: bool = False,
        pass_pairs: int = _NO_LIMIT,
        rounds_per_epoch: int = 1,
    ):
        self.rounds_per_epoch = rounds_per_epoch
        self._sizes, self._config, self._seed = sizes, config, seed
        self._fill, self._pass_pairs = fill, pass_pairs

    def n_steps(self, n_epochs: int) -> int:
        """The number of steps of the first `n_epochs` epochs."""
        return sum(len(self.batches(epoch)) for epoch in range(n_epochs))

    def batches(self, epoch: int) -> list[list[int]]:
        """The batches of one epoch (from 0), as numbers of examples."""
        config, sizes = self._config, self._sizes_in(epoch)
        rng = np.random.default_rng((self._seed, epoch))
        order = rng.permutation(len(sizes))
        if self._fill:
            order = np.resize(order, -(-len(order) // config.batch_size) * config.batch_size)
        if not config.pool_batches:
            return self._cut(order, sizes)
        pool_size = config.pool_batches * config.batch_size
        batches: list[list[int]] = []
        for start in range(0, len(order), pool_size):
            pool = order[start : start + pool_size]
            batches += self._cut(pool[np.argsort(sizes[pool], kind="stable")], sizes)
        # Pools of one batch are in random order already.
        return [batches[k] for k in rng.permutation(len(batches))] if config.pool_batches > 1 else batches

    def steps(self, start: Place, *, rank: int = 0, n_processes: int = 1) -> Iterator[StepPart]:
        """Yield the examples of process `rank` in each step from `start`, without end.

        The examples of a step are the same for any number of processes; only their distribution differs.
        """
        epoch, done = start
        while True:
            batches, sizes = self.batches(epoch), self._sizes_in(epoch)
            for number in range(done, len(batches)):
                passes = self._passes(batches[number], sizes, n_processes)
                is_last, is_idle = number + 1 == len(batches), rank >= len(passes)
                of_rank = passes[:1] if is_idle else passes[rank::n_processes]
                yield StepPart(Place(epoch + 1, 0) if is_last else Place(epoch, number + 1), epoch, of_rank, is_idle)
            epoch, done = epoch + 1, 0

    def padding_share(self) -> float:
        """Share of node pairs computed on padding in the first epoch, 0..1."""
        batches = [self._sizes_in(0)[batch] for batch in self.batches(0)]
        padded = sum(len(sizes) * int(sizes.max()) ** 2 for sizes in batches)
        return 1 - sum(int((sizes * sizes).sum()) for sizes in batches) / padded if padded else 0.0

    def _sizes_in(self, epoch: int) -> np.ndarray:
        return self._sizes(epoch) if callable(self._sizes) else self._sizes

    def _passes(self, batch: list[int], sizes: np.ndarray, n_processes: int) -> list[list[int]]:
        n_most = self._config.micro_batch_size or len(batch)
        if n_processes > 1 and self._pass_pairs == _NO_LIMIT:  # equally many passes of similar size per process
            n_passes = n_processes * -(-len(batch) // (n_processes * n_most))
            return [part.tolist() for part in np.array_split(np.array(batch), n_passes) if len(part)]
        n_most = max(1, min(n_most, len(batch) // n_processes))
        cuts = batches_by_budget(sizes[batch].tolist(), max_sentences=n_most, max_pairs=self._pass_pairs)
        return [[batch[k] for k in cut] for cut in cuts]

    def _cut(self, order: np.ndarray, sizes: np.ndarray) -> list[list[int]]:
        max_pairs = self._config.max_pairs or _NO_LIMIT
        cuts = batches_by_budget(sizes[order].tolist(), max_sentences=self._config.batch_size, max_pairs=max_pairs)
        return [order[cut].tolist() for cut in cuts]
