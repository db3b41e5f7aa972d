"""Attention with additional scores, for training on a CPU: gradients flow to the scores as well.

    softmax(scale Q K^T + scores) V, with dropout on the probabilities

PyTorch's fused attention for CPUs has no gradient of the scores, and its fallback is slower than plain operations.
Here, a compiled kernel (`cige.nn.native`) computes everything between the two matrix products in one pass over [B, H,
M, N] in each direction, and derives dropout from a key and a position. Without it, or in other dtypes, PyTorch
operations give the same results except for the random numbers. Internally, heads are the first axis, which is the
memory layout of the scores of `lattice_positions`, so that no layer copies them.
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch import Tensor

from cige.nn import native
from cige.nn.dropout import Dropout


def scored_attention(
    query: Tensor, key: Tensor, value: Tensor, scores: Tensor, *, scale: float, dropout: Dropout
) -> Tensor:
    """float[B, H, M, e], zeros for a query whose keys are all masked.

    Args:
        query: float[B, H, M, d]; key: float[B, H, N, d]; value: float[B, H, N, e].
        scores: float[B, H, M, N], -inf for masked keys.
    """
    n_heads, n_batch = query.shape[1], len(query)
    queries, keys, values = (_heads_first(x) for x in (query, key, value))
    weights = _weights(queries, keys, _heads_first(scores.to(query.dtype)), scale, dropout)
    return (weights @ values).view(n_heads, n_batch, query.shape[2], value.shape[3]).transpose(0, 1)


def scored_probabilities(query: Tensor, key: Tensor, scores: Tensor, *, scale: float) -> Tensor:
    """float[B, H, M, N]: the probabilities of `scored_attention`, without dropout."""
    probabilities = _softmax(_heads_first(query), _heads_first(key), _heads_first(scores.to(query.dtype)), scale)
    return probabilities.view(scores.shape[1], len(scores), *scores.shape[2:]).transpose(0, 1)


def _heads_first(x: Tensor) -> Tensor:
    """[B, H, ..] -> [H * B, ..]."""
    return x.transpose(0, 1).flatten(0, 1)


def _weights(query: Tensor, key: Tensor, scores: Tensor, scale: float, dropout: Dropout) -> Tensor:
    if query.device.type == "cpu" and query.dtype in (torch.float32, torch.bfloat16):
        library = native.load()
        if library is not None:
            prob = dropout.prob if dropout.training else 0.0
            return _CompiledWeights.apply(library, query, key, scores, scale, prob)
    return dropout(_softmax(query, key, scores, scale))


def _softmax(query: Tensor, key: Tensor, scores: Tensor, scale: float) -> Tensor:
    # one pass over [H * B, M, N] instead of three
    logits = torch.baddbmm(scores, query, key.transpose(1, 2), alpha=scale)
    sees_nothing = logits.amax(-1, keepdim=True) == float("-inf")
    return torch.softmax(logits.masked_fill(sees_nothing, 0.0), -1).masked_fill(sees_nothing, 0.0)


class _CompiledWeights(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, library: ctypes.CDLL, query: Tensor, key: Tensor, scores: Tensor, scale: float, prob: float
    ) -> Tensor:
        probabilities = torch.baddbmm(scores, query, key.transpose(1, 2), alpha=scale)  # scores at first
        dropped = torch.empty_like(probabilities) if prob else None
        seed = int(torch.randint(2**63 - 1, ())) if prob else 0
        ctx.library, ctx.scale, ctx.prob, ctx.sizes = library, scale, prob, _sizes(probabilities, seed)
        pointers = native.pointers(probabilities, dropped)
        native.call(library.softmax_dropout_forward, ctx.sizes, prob, *pointers, of="attention")
        ctx.save_for_backward(query, key, probabilities, dropped)
        return probabilities if dropped is None else dropped

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        query, key, probabilities, dropped = ctx.saved_tensors
        gradient = torch.empty_like(probabilities)  # with respect to both products and scores
        pointers = native.pointers(probabilities, dropped, grad := grad.contiguous(), gradient)
        native.call(ctx.library.softmax_dropout_backward, ctx.sizes, ctx.prob, *pointers, of="attention")
        of_query = torch.bmm(gradient, key).mul_(ctx.scale)
        of_key = torch.bmm(gradient.transpose(1, 2), query).mul_(ctx.scale)
        return None, of_query, of_key, gradient, None, None


def _sizes(rows: Tensor, seed: int) -> ctypes.Array[ctypes.c_int64]:
    n = rows.shape[-1]
    n_rows = rows.numel() // max(1, n)
    return (ctypes.c_int64 * 5)(n_rows, n, rows.dtype == torch.bfloat16, torch.get_num_threads(), seed)
