"""Optimisers, their parameter groups, gradient clipping, and an average of the weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from cige.engine.parallel import values_of, whole
from cige.engine.row_adam import RowAdamW
from cige.engine.settings import OptimizerConfig
from cige.nn.embeddings import SplitEmbedding

# Steps between updates of an average, because an update reads whole embedding tables, but a step only some rows.
AVERAGE_EVERY = 8
SCALE = "scale"  # key of a parameter group: the factor by which its learning rate is multiplied


def make_optimizer(
    network: nn.Module,
    config: OptimizerConfig,
    *,
    scales: Mapping[nn.Module, float] | None = None,
    by_rows: bool = True,
) -> torch.optim.Optimizer:
    """Create the optimiser of a network; parameters with one axis (biases, normalisation gains) have no weight decay.

    Tables of SplitEmbedding have no weight decay either. On a CPU, AdamW updates them by rows (RowAdamW), which gives
    the same result in a fraction of the time. On a GPU the dense form is as fast.

    Args:
        scales: parts of the network -> the factor by which their learning rate is multiplied.
        by_rows: False uses the dense form on a CPU as well; several processes need it, since each reads other rows.
    """
    groups = _parameter_groups(network, config, scales or {})
    modules = [m for m in network.modules() if isinstance(m, SplitEmbedding)]
    if config.name == "sgd":
        return torch.optim.SGD(groups, lr=config.learning_rate, momentum=config.momentum)
    beta1, beta2 = config.betas
    if not by_rows or not modules or any(module.tuned.is_cuda for module in modules):
        return torch.optim.AdamW(groups, lr=config.learning_rate, betas=(beta1, beta2), eps=config.epsilon, fused=True)
    tables = [module.tuned for module in modules]
    optimizer = RowAdamW(groups, tables=tables, lr=config.learning_rate, betas=(beta1, beta2), eps=config.epsilon)
    for module in modules:
        module.sparse_gradient = True
        module.register_forward_pre_hook(lambda m, rows: optimizer.catch_up(m.tuned, rows[0]))
    return optimizer


def set_learning_rate(optimizer: torch.optim.Optimizer, learning_rate: float) -> None:
    """Set the learning rate of the next step, multiplied by the scale of each parameter group."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate * group[SCALE]


def finish_updates(optimizer: torch.optim.Optimizer) -> None:
    """Bring all parameters up to date, before they are read other than by a forward pass."""
    if isinstance(optimizer, RowAdamW):
        optimizer.catch_up_all()


@torch.no_grad()
def clip_gradients(parameters: Iterable[nn.Parameter], config: OptimizerConfig) -> Tensor:
    """Clip the gradient in place; returns its norm before clipping."""
    values = [_gradient_values(p) for p in parameters if p.grad is not None]
    norm = whole(nn.utils.get_total_norm(values))
    gradients = [values_of(gradient) for gradient in values]
    if config.clip_norm is not None:
        torch._foreach_mul_(gradients, (config.clip_norm / (norm + 1e-6)).clamp(max=1.0))
    elif config.clip_value is not None:
        torch._foreach_clamp_min_(gradients, -config.clip_value)
        torch._foreach_clamp_max_(gradients, config.clip_value)
    return norm


def _gradient_values(parameter: nn.Parameter) -> Tensor:
    """The values of the gradient, with each row once."""
    assert parameter.grad is not None
    if not parameter.grad.is_sparse:
        return parameter.grad
    parameter.grad = parameter.grad.coalesce()
    return parameter.grad.values()


def _parameter_groups(
    network: nn.Module, config: OptimizerConfig, scales: Mapping[nn.Module, float]
) -> list[dict[str, object]]:
    scale_of = {p: scale for module, scale in scales.items() for p in module.parameters()}
    undecayed = {m.tuned for m in network.modules() if isinstance(m, SplitEmbedding)}
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for p in network.parameters():
        if p.requires_grad:
            decay = 0.0 if p.ndim <= 1 or p in undecayed else config.weight_decay
            groups.setdefault((scale_of.get(p, 1.0), decay), []).append(p)
    return [
        {"params": parameters, "lr": config.learning_rate * scale, SCALE: scale, "weight_decay": decay}
        for (scale, decay), parameters in groups.items()
    ]


class WeightAverage:
    """Computes average = decay * average + (1 - decay) * weights, where `decay` is the decay per step.

    The decay of update n is at most (1 + n) / (10 + n), so that the random initial weights are soon forgotten. The
    average is PyTorch's AveragedModel of the trained weights only, because fixed tables need no copy.
    """

    def __init__(self, network: nn.Module, *, decay: float):
        def lerp(averages: Any, weights: Any, n_averaged: Tensor | int) -> None:
            n = int(n_averaged)
            torch._foreach_lerp_(averages, weights, 1 - min(decay**AVERAGE_EVERY, (1 + n) / (10 + n)))

        self._weights = nn.ParameterList(p for p in network.parameters() if p.requires_grad)
        self._average = AveragedModel(self._weights, multi_avg_fn=lerp)
        self._average.n_averaged.fill_(1)  # the initial weights count as the first update

    def is_due(self, step: int) -> bool:
        """Whether to call `update` after this many steps."""
        return step % AVERAGE_EVERY == 0

    def update(self) -> None:
        """Add the current weights, which must be up to date (`finish_updates`)."""
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
