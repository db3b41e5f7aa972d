"""Several processes that share each step: whole copies of the network (DDP), or shards of it (FSDP).

ddp     Every process has the whole network and optimiser; gradients are averaged.
fsdp    Every process has 1/n of each weight, gradient and moment. The weights of a part of the network are gathered
        when it computes, which costs half as much communication again as DDP.

Both give the same steps as one process, except for rounding and dropout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor, nn

from cige.engine.settings import Sharding

if TYPE_CHECKING:
    from accelerate import Accelerator

T = TypeVar("T")


class Losses(nn.Module):
    """Calls a function of the network and a batch as a forward pass, which DDP and FSDP need to see."""

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network

    def forward(self, losses: Callable[[nn.Module, Any], tuple[Tensor, Tensor]], batch: Any) -> tuple[Tensor, Tensor]:
        return losses(self.network, batch)


def distributed(network: nn.Module, accelerator: Accelerator, sharding: Sharding, parts: Sequence[nn.Module]) -> Losses:
    """The module whose forward passes train a network with all processes; with one process nothing is wrapped.

    Args:
        parts: the parts of the network that FSDP gathers one at a time, such as its layers.
    """
    if accelerator.num_processes == 1:
        return Losses(network)
    if sharding == "ddp":
        return accelerator.prepare_model(Losses(network))  # type: ignore[no-any-return]
    # accelerate's own FSDP needs a GPU; this is what it calls, and it works with gloo on a CPU as well.
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(accelerator.device.type, (accelerator.num_processes,))
    for part in parts:
        fully_shard(part, mesh=mesh)
    fully_shard(network, mesh=mesh)
    return Losses(network)


@contextmanager
def gathering(model: nn.Module, accelerator: Accelerator, *, is_last: bool) -> Iterator[None]:
    """A context for a forward and backward pass; gradients are exchanged in the last pass of a step only."""
    network = getattr(model, "network", None)
    if hasattr(network, "set_requires_gradient_sync"):
        network.set_requires_gradient_sync(is_last)  # type: ignore[union-attr, operator]
        yield
    elif is_last or accelerator.num_processes == 1:
        yield
    else:
        with accelerator.no_sync(model):
            yield


def of_first_process(value: T, accelerator: Accelerator) -> T:
    """The value that the first process has, so that rounding cannot let processes decide differently."""
    if accelerator.num_processes == 1:
        return value
    from accelerate.utils import broadcast_object_list

    return broadcast_object_list([value])[0]  # type: ignore[no-any-return]


@torch.no_grad()
def whole_weights(network: nn.Module) -> dict[str, Tensor]:
    """All parameters by name, whole and on the CPU; all processes call this together if they hold shards."""
    return {name: whole(parameter).detach().cpu() for name, parameter in network.named_parameters()}


def whole(tensor: Any) -> Tensor:
    """A tensor with the rows of all processes, which call this together."""
    return tensor.full_tensor() if is_sharded(tensor) else tensor  # type: ignore[no-any-return]


def is_sharded(tensor: Tensor) -> bool:
    """Whether a tensor is a shard that FSDP made."""
    return hasattr(tensor, "full_tensor")


def values_of(tensor: Any) -> Tensor:
    """The values that this process holds of a tensor, which change with it."""
    return tensor.to_local() if is_sharded(tensor) else tensor  # type: ignore[no-any-return]
