"""Padded rows without their padding, [B, T, D] -> [N, D], and back.

In a batch of sentences of different lengths, a quarter to a third of the rows of padded tensors is padding. Products
and functions of single rows are computed over real rows alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F


@dataclass(frozen=True)
class RealRows:
    """The N real rows of padded tensors [B, T, ..].

    Attributes:
        places: int64[N], ascending, the numbers of the real rows in [B * T].
        numbers: int64[B, T], the number of each row among the real ones; undefined for padding.
        mask: bool[B, T], the real rows.
    """

    places: Tensor
    numbers: Tensor
    mask: Tensor

    @classmethod
    def of(cls, mask: Tensor) -> RealRows:
        """The rows where the mask bool[B, T] holds."""
        return cls(mask.flatten().nonzero()[:, 0], (mask.flatten().cumsum(0) - 1).view(mask.shape), mask)

    @property
    def sentence(self) -> Tensor:
        """int64[N]: the sentence of each row."""
        return self.places // max(1, self.numbers.shape[1])

    def pack(self, x: Tensor) -> Tensor:
        """[B, T, ..] -> [N, ..]."""
        return _Pack.apply(x.flatten(0, 1), self.places)

    def pad(self, x: Tensor) -> Tensor:
        """[N, ..] -> [B, T, ..], zeros in padding."""
        return _Pad.apply(x, self.places, self.numbers.numel()).view(*self.numbers.shape, *x.shape[1:])


def masked_mean(x: Tensor, mask: Tensor) -> Tensor:
    """The mean of float[B, T, D] over the real rows, bool[B, T]: float[B, D]; zeros for a sentence without any."""
    return (x * mask[:, :, None]).sum(1) / mask.sum(1).clamp(min=1)[:, None]


@dataclass(frozen=True)
class SpacedRows:
    """The real rows of all sentences as one sequence of N rows, with a gap of zeros after each sentence.

    A shift by at most the gap then moves rows within their sentence, and zeros in.

    Attributes:
        rows: the N rows in [B, T + gap].
        is_real: bool[N]; is_padded_real: bool[B, T + gap]: rows that are not in a gap.
    """

    rows: RealRows
    is_real: Tensor
    is_padded_real: Tensor

    def pack(self, x: Tensor) -> Tensor:
        """[B, T, D] -> [N, D]; what `x` has in padding may stand in a gap."""
        return self.rows.pack(F.pad(x, (0, 0, 0, self.is_padded_real.shape[1] - x.shape[1])))


def spaced_rows(mask: Tensor, *, gap: int) -> SpacedRows:
    """The rows where the mask bool[B, T] holds, which are the first ones of each sentence."""
    n_rows = mask.sum(1, keepdim=True)
    position = torch.arange(mask.shape[1] + gap, device=mask.device)
    rows, is_padded_real = RealRows.of(position < n_rows + gap), position < n_rows
    return SpacedRows(rows, rows.pack(is_padded_real), is_padded_real)


class _Pack(torch.autograd.Function):
    """index_select of different rows, whose gradient is a copy instead of a sum."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, places: Tensor) -> Tensor:
        ctx.save_for_backward(places)
        ctx.n_rows = len(x)
        return x.index_select(0, places)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (places,) = ctx.saved_tensors
        return gradient.new_zeros(ctx.n_rows, *gradient.shape[1:]).index_copy_(0, places, gradient), None


class _Pad(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, places: Tensor, n_rows: int) -> Tensor:
        ctx.save_for_backward(places)
        return x.new_zeros(n_rows, *x.shape[1:]).index_copy_(0, places, x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (places,) = ctx.saved_tensors
        return gradient.index_select(0, places), None, None
