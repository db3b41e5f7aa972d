"""An exponential moving average of the weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

EVERY = 8  # steps between two updates: one reads all embedding tables, a step of training only the rows of its batch


class WeightAverage:
    """Keeps average = decay * average + (1 - decay) * weights, `decay` being that of one step.

    The decay of update n is at most (1 + n) / (10 + n), so that the random start is soon forgotten.

    Args:
        settle: called before weights are taken in, to bring those up to date whose updates the optimiser puts off
            (`training.optimizer.settle`).
    """

    def __init__(self, model: nn.Module, *, decay: float, settle: Callable[[], None] = lambda: None):
        self._decay = decay**EVERY
        self._settle = settle
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        self._average = [p.detach().clone() for p in self._parameters]
        self._n_steps = 0

    @torch.no_grad()
    def update(self) -> None:
        """To be called after each optimiser step; takes in the weights after every EVERY-th."""
        self._n_steps += 1
        if self._n_steps % EVERY == 0:
            n_updates = self._n_steps // EVERY
            decay = min(self._decay, (1 + n_updates) / (10 + n_updates))
            self._settle()
            torch._foreach_lerp_(self._average, [p.detach() for p in self._parameters], 1 - decay)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Within the block the model holds the averaged weights."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def state_dict(self) -> dict[str, Tensor]:
        state = {str(k): tensor for k, tensor in enumerate(self._average)}
        return state | {"n_steps": torch.tensor(self._n_steps)}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self._n_steps = int(state["n_steps"])
        for k, tensor in enumerate(self._average):
            tensor.copy_(state[str(k)])

    @torch.no_grad()
    def _swap(self) -> None:
        for parameter, average in zip(self._parameters, self._average, strict=True):
            held = parameter.detach().clone()
            parameter.copy_(average)
            average.copy_(held)
