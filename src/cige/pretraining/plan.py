"""StepPlan: which instances every step reads, and which of them each process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from torch.utils.data import Dataset

from cige.pretraining.batch import MaskedBatch, collate_masked
from cige.pretraining.dataset import InstanceSet


@dataclass(frozen=True)
class Place:
    """Where a run stands in its data.

    Attributes:
        epoch: from 0, within a phase.
        batch: batches of the epoch that were read.
    """

    epoch: int = 0
    batch: int = 0


@dataclass(frozen=True)
class StepPart:
    """What one process reads in a step.

    Attributes:
        place: after the step.
        micro_batches: numbers of instances, one tuple for each forward pass.
    """

    place: Place
    micro_batches: tuple[tuple[int, ...], ...]


class StepPlan:
    """Batches of a fixed number of instances, epoch after epoch, each epoch shuffled with (seed, epoch).

    Within a batch instances are sorted by length and cut into micro-batches, so that little is padded while batches
    stay random. The last batch of an epoch is filled up with the epoch's first instances. A step is the same for
    any number of processes; only who reads what differs.

    Args:
        batch_size: instances a step, of all processes together.
        micro_batch_size: instances a forward pass, at most.
    """

    def __init__(self, instances: InstanceSet, *, batch_size: int, micro_batch_size: int, seed: int):
        self._instances = instances
        self._batch_size = batch_size
        self._micro_batch_size = micro_batch_size
        self._seed = seed

    def batches(self, epoch: int) -> np.ndarray:
        """int64[n_batches, batch_size]: the instances of each batch of an epoch, from short to long."""
        n_tokens = self._instances.n_tokens(epoch)
        order = np.random.default_rng((self._seed, epoch)).permutation(len(n_tokens))
        n_batches = -(-len(order) // self._batch_size)
        batches = np.resize(order, n_batches * self._batch_size).reshape(n_batches, -1)
        return np.take_along_axis(batches, np.argsort(n_tokens[batches], axis=1, kind="stable"), axis=1)

    def steps(self, start: Place, *, rank: int = 0, n_processes: int = 1) -> Iterator[tuple[int, StepPart]]:
        """(epoch, what process `rank` reads) for each step from `start` on, without end."""
        size = min(self._micro_batch_size, self._batch_size // n_processes)
        epoch, done = start.epoch, start.batch
        while True:
            batches = self.batches(epoch)
            for number in range(done, len(batches)):
                numbers = batches[number].tolist()
                cuts = [tuple(numbers[k : k + size]) for k in range(0, len(numbers), size)]
                at_end = number + 1 == len(batches)
                place = Place(epoch + 1, 0) if at_end else Place(epoch, number + 1)
                yield epoch, StepPart(place, tuple(cuts[rank::n_processes]))
            epoch, done = epoch + 1, 0


class StepData(Dataset[tuple[Place, list[MaskedBatch]]]):
    """Makes the batches of a step; a DataLoader asks it in the order of a StepPlan."""

    def __init__(self, instances: InstanceSet):
        self._instances = instances

    def __getitem__(self, key: tuple[int, StepPart]) -> tuple[Place, list[MaskedBatch]]:
        epoch, part = key
        masked = self._instances.masked
        return part.place, [collate_masked([masked(epoch, n) for n in numbers]) for numbers in part.micro_batches]
