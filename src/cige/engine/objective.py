"""Objective: the interface through which the engine runs a kind of training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from torch import Tensor

from cige.engine.history import Record, RunState
from cige.engine.plan import BatchPlan

N = TypeVar("N", contravariant=True)
B = TypeVar("B")


class Objective(Protocol[N, B]):
    """The training examples, the loss, and the evaluation; N is the network, B the input of a forward pass.

    A loss may have K parts, each a mean over its own weight (such as the number of sentences or of tokens to predict).
    The loss of a step is the sum over the parts of (summed loss) / (summed weight), over all forward passes and
    processes of the step.
    """

    plan: BatchPlan  # which examples each step reads
    n_steps: int
    keeps_best: bool  # whether to keep the weights of the best evaluation, by its first score, or the last weights

    def read(self, epoch: int, numbers: Sequence[int]) -> B:
        """The examples of a forward pass; depends only on the arguments, and may be called in other processes."""

    def weights(self, batch: B) -> Sequence[float]:
        """The weight of each of the K parts of the loss."""

    def losses(self, network: N, batch: B) -> tuple[Tensor, Tensor]:
        """float[K], the summed loss of each part; and float64[M], the sums for `summary`, without gradients.

        This is called within a forward pass of the module that shares it among processes, see engine/parallel.py.
        """

    def summary(self, totals: Sequence[float]) -> dict[str, float]:
        """The summary of several steps of training for a record, given the M totals of `losses`."""

    def evaluate(self, network: N) -> dict[str, float]:
        """Scores, the deciding one first (higher is better); {} if there is nothing to evaluate on.

        The network is left in its previous mode. If there are several processes, all of them call this together.
        """

    def describe(self, record: Record, state: RunState) -> str:
        """A line of text about the newest record."""
