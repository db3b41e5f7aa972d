"""Objective: what a kind of training must say for the engine to run it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from torch import Tensor

from cige.engine.history import Record, RunState
from cige.engine.plan import BatchPlan

N = TypeVar("N", contravariant=True)
B = TypeVar("B")


class Objective(Protocol[N, B]):
    """What to learn from, the loss, and how to evaluate; N is the network, B what a forward pass reads.

    A loss may have K parts, each a mean over a weight of its own (sentences, tokens to predict): a step's loss is the
    sum over the parts of (summed loss) / (summed weight), over all forward passes and processes of the step.

    Attributes:
        plan: which examples each step reads.
        n_steps: how many steps of it are taken.
        keeps_best: keep the weights of the best evaluation, by the first of its scores; if not, the last weights.
    """

    plan: BatchPlan
    n_steps: int
    keeps_best: bool

    def read(self, epoch: int, numbers: Sequence[int]) -> B:
        """The examples of a forward pass, a function of the arguments alone; processes beside this one may call it."""
        ...

    def weights(self, batch: B) -> Sequence[float]:
        """K numbers: the weight of each part of the loss."""
        ...

    def losses(self, network: N, batch: B) -> tuple[Tensor, Tensor]:
        """float[K], the summed loss of each part; and float64[M], what is added up for `summary`, without gradients.

        Args:
            network: the one that is trained, or a wrapper whose forward pass is the same.
        """
        ...

    def summary(self, totals: Sequence[float]) -> dict[str, float]:
        """What a record says of some steps of training, given the M totals of `losses`."""
        ...

    def evaluate(self, network: N) -> dict[str, float]:
        """Scores, the deciding one first (higher is better); {} where there is nothing to evaluate on.

        Leaves the network in the mode it was in. Several processes call it together.
        """
        ...

    def describe(self, record: Record, state: RunState) -> str:
        """The newest record as a line for people."""
        ...
