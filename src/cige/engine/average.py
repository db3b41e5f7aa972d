"""An exponential moving average of the weights that are trained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

EVERY = 8  # steps between updates, because an update reads whole embedding tables but a training step only some rows


class WeightAverage:
    """Computes average = decay * average + (1 - decay) * weights, where `decay` is the decay per step.

    The decay of update n is at most (1 + n) / (10 + n), so that the random initial weights are soon forgotten. The
    average is PyTorch's AveragedModel of the trained weights only, because fixed tables need no copy.
    """

    def __init__(self, network: nn.Module, *, decay: float):
        def lerp(averages: Any, weights: Any, n_averaged: Tensor | int) -> None:
            n = int(n_averaged)
            torch._foreach_lerp_(averages, weights, 1 - min(decay**EVERY, (1 + n) / (10 + n)))

        self._weights = nn.ParameterList(p for p in network.parameters() if p.requires_grad)
        self._average = AveragedModel(self._weights, multi_avg_fn=lerp)
        self._average.n_averaged.fill_(1)  # the initial weights count as the first update

    def is_due(self, step: int) -> bool:
        """Whether to call `update` after this many steps."""
        return step % EVERY == 0

    def update(self) -> None:
        """Add the current weights, which must be up to date (`optimizer.finish_updates`)."""
        self._average.update_parameters(self._weights)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """A context in which the network has the averaged weights."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def state_dict(self) -> dict[str, Tensor]:
        return self._average.state_dict()

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self._average.load_state_dict(state)

    @torch.no_grad()
    def _swap(self) -> None:
        averages: Sequence[Tensor] = list(self._average.module.parameters())
        for weight, average in zip(self._weights, averages, strict=True):
            held = weight.detach().clone()
            weight.copy_(average)
            average.copy_(held)
