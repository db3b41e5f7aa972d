"""Contexts of forward passes: the precision of products, and evaluation mode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import nn


def autocast(network: nn.Module, precision: str) -> AbstractContextManager[object]:
    """The context of a forward pass: matrix products in bfloat16 for "bf16"."""
    device = next(network.parameters()).device.type
    return torch.autocast(device, torch.bfloat16) if precision == "bf16" else nullcontext()


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """Without dropout inside the context; the network is left in its previous mode."""
    was_training = network.training
    network.eval()
    try:
        yield
    finally:
        network.train(was_training)
