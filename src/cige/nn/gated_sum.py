"""Sums of vectors with a softmax over sigmoids as weights, for each number by itself (LGN, LR-CNN).

    w_k = exp(sigmoid(g_k)) / sum over m of exp(sigmoid(g_m))        out = sum over k of w_k v_k

Sigmoids are bounded, so that the softmax needs no maximum, and the sum is divided once, by the denominator. With s_k
for the sigmoids and d for the gradient of the sum, the gradients are

    v_k: w_k d        g_k: s_k (1 - s_k) w_k (v_k - out) d
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def gated_sum(gates: Tensor, *values: Tensor) -> Tensor:
    """float[N, D] of the n values float[N, D], with their gates float[N, n * D] before the sigmoid."""
    dtype = gates.dtype
    for value in values:
        dtype = torch.promote_types(dtype, value.dtype)  # products may be in bfloat16, and states in float32
    return _GatedSum.apply(gates.to(dtype), *(value.to(dtype) for value in values))


def gated_shares(gates: Tensor, n_values: int) -> Tensor:
    """float[N, n, D]: the weights of the values."""
    return torch.softmax(torch.sigmoid(gates.unflatten(1, (n_values, -1))), 1)


def quick_tanh(x: Tensor) -> Tensor:
    """tanh as 2 sigmoid(2 x) - 1, which takes half the time on a CPU; the absolute error is 1e-7 in float32."""
    return _QuickTanh.apply(x)


class _QuickTanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        out = (2 * x).sigmoid_().mul_(2).sub_(1)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (out,) = ctx.saved_tensors
        return gradient * (1 - out * out)


class _GatedSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gates: Tensor, *values: Tensor) -> Tensor:
        sigmoids = torch.sigmoid(gates)
        needs_gradient = any(ctx.needs_input_grad)
        parts = (sigmoids.exp() if needs_gradient else sigmoids.exp_()).chunk(len(values), 1)
        total, out = parts[0] + parts[1], parts[0] * values[0]
        for part in parts[2:]:
            total += part
        for part, value in zip(parts[1:], values[1:], strict=True):
            out.addcmul_(part, value)
        out /= total
        if needs_gradient:
            ctx.save_for_backward(sigmoids, total, out, *parts, *values)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, ...]:
        sigmoids, total, out, *rest = ctx.saved_tensors
        parts, values = rest[: len(rest) // 2], rest[len(rest) // 2 :]
        gradient = gradient / total
        of_values = [part * gradient for part in parts]
        of_gates = torch.cat([of * (value - out) for of, value in zip(of_values, values, strict=True)], 1)
        of_gates *= sigmoids * (1 - sigmoids)
        return of_gates, *of_values
