"""The precision of a forward pass."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn


def autocast(network: nn.Module, precision: str) -> AbstractContextManager[object]:
    """The context of a forward pass: matrix products in bfloat16 for "bf16"."""
    device = next(network.parameters()).device.type
    return torch.autocast(device, torch.bfloat16) if precision == "bf16" else nullcontext()
