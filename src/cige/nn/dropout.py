"""Dropout whose mask takes a fifth of the time of PyTorch's on the CPU."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Dropout(nn.Module):
    """Elementwise dropout with scaling, like nn.Dropout.

    On the CPU, PyTorch draws a full random number per element, which costs as much as the matrix products around it
    (measured: 6.0 ms against 1.0 ms for 1100 x 480). Here, sixteen random bits are drawn per element, and the
    probability is rounded to a multiple of 1 / 65536.
    """

    def __init__(self, prob: float):
        super().__init__()
        if not 0 <= prob < 1:
            raise ValueError(f"dropout probability {prob}; expected 0 <= p < 1")
        self.prob = prob

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.prob == 0:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.prob)
        words = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
        bits = words.view(torch.int16)[: x.numel()].view(x.shape)
        threshold = round(self.prob * 65536) - 32768
        return x * (bits >= threshold).to(x.dtype).mul_(1 / (1 - self.prob))

    def extra_repr(self) -> str:
        return f"prob={self.prob}"
