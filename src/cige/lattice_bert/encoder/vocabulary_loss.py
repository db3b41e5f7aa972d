"""Cross-entropy over a large vocabulary, in parts, so that the scores of all S * V pairs never exist at once."""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Callable
from ctypes import CDLL
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cige.nn import native

# Scores in memory at once: 64 MB on a CPU, where more would exceed the cache; 1 GB elsewhere, to fill the device.
CHUNK_FLOATS = {"cpu": 2**24}
CHUNK_FLOATS_ELSEWHERE = 2**28


class VocabularyLoss(NamedTuple):
    """The loss of the predictions of a batch."""

    loss: Tensor  # float[], the sum over S targets of -log p(target)
    n_right: Tensor  # int64[], number of targets with the highest score of the vocabulary


def vocabulary_loss(vectors: Tensor, table: Tensor, bias: Tensor, targets: Tensor) -> VocabularyLoss:
    """Softmax of vectors . table^T + bias against `targets`.

    Args:
        vectors: float[S, E]; targets: int64[S], in [0, V).
        table: float[V, E]; bias: float[V].

    The gradient is computed together with the loss, from scores that are still in the cache. This saves a matrix
    product and the copies of [S, V] that cross_entropy keeps (measured on a CPU at S = 416, V = 102,128: 0.54 s instead
    of 0.90 s, forward and backward). Products are in the dtype of autocast.
    """
    dtype = vectors.dtype
    if torch.is_autocast_enabled(vectors.device.type):
        dtype = torch.get_autocast_dtype(vectors.device.type)
    return VocabularyLoss(*_VocabularyLoss.apply(vectors, table, bias, targets, dtype, torch.is_grad_enabled()))


class _VocabularyLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, vectors: Tensor, table: Tensor, bias: Tensor, targets: Tensor, dtype: torch.dtype, with_grad: bool
    ) -> tuple[Tensor, Tensor]:
        device = vectors.device.type
        n_rows = max(1, CHUNK_FLOATS.get(device, CHUNK_FLOATS_ELSEWHERE) // len(table))
        gradients = [torch.zeros_like(x) for x in (vectors, table, bias)] if with_grad else []
        of_bias = gradients[2] if with_grad else None
        loss, n_right = bias.new_zeros(()), targets.new_zeros(())
        narrow_vectors, narrow_table, narrow_bias = vectors.to(dtype), table.to(dtype), bias.to(dtype)
        loss_and_gradient = _loss_function(device, dtype, bias.dtype)
        scores = _buffer(min(n_rows, len(vectors)), len(table), like=narrow_vectors)  # once: new memory costs a pass
        with torch.autocast(device, enabled=False):
            for start in range(0, len(vectors), n_rows):
                chunk, target = narrow_vectors[start : start + n_rows], targets[start : start + n_rows]
                gradient = torch.addmm(narrow_bias, chunk, narrow_table.t(), out=scores[: len(chunk)])
                chunk_loss, chunk_right = loss_and_gradient(gradient, target, of_bias)
                loss += chunk_loss
                n_right += chunk_right
                if with_grad:
                    gradients[0][start : start + n_rows] = gradient @ narrow_table
                    if dtype == table.dtype:
                        gradients[1].addmm_(gradient.t(), chunk)
                    else:
                        gradients[1] += gradient.t() @ chunk
        ctx.save_for_backward(*gradients)
        ctx.mark_non_differentiable(n_right)
        return loss, n_right

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        return (*(gradient.mul_(grad) for gradient in ctx.saved_tensors), None, None, None)


LossFunction = Callable[[Tensor, Tensor, Tensor | None], tuple[Tensor, Tensor]]
"""Computes the loss and the number of correct predictions, both as sums, from scores float[S, V] and targets.

The scores are overwritten with their gradient, which is also added to the gradient of the bias, float[V]. If that is
None, no gradient is needed, and the content of the scores is undefined afterwards.
"""


def _loss_function(device: str, dtype: torch.dtype, wide: torch.dtype) -> LossFunction:
    """A compiled form if one applies (float32 sums over scores in float32 or bfloat16), or else PyTorch's."""
    if wide == torch.float32 and dtype in (torch.float32, torch.bfloat16):
        if _has_kernel(device):
            from cige.lattice_bert.encoder.vocabulary_loss_triton import loss_and_gradient

            return loss_and_gradient
        if device == "cpu" and (library := native.load()) is not None:
            return partial(_compiled_loss, library)
    return partial(_torch_loss, wide)


def _has_kernel(device: str) -> bool:
    return device == "cuda" and importlib.util.find_spec("triton") is not None


def _buffer(n_rows: int, n_tokens: int, *, like: Tensor) -> Tensor:
    """[n_rows, n_tokens] for scores, in the memory layout that the form of `_loss_function` needs."""
    if _has_kernel(like.device.type):
        from cige.lattice_bert.encoder.vocabulary_loss_triton import score_buffer

        return score_buffer(n_rows, n_tokens, like=like)
    return like.new_empty(n_rows, n_tokens)


def _torch_loss(wide: torch.dtype, scores: Tensor, targets: Tensor, of_bias: Tensor | None) -> tuple[Tensor, Tensor]:
    wide_scores, target = scores.to(wide), targets[:, None]  # no copy if they are wide already
    best, score = wide_scores.amax(1, keepdim=True), wide_scores.gather(1, target)
    probabilities = torch.softmax(wide_scores, 1, out=wide_scores)
    # p(target) may round to 0, so log p is computed relative to the best score, whose p is at least 1 / V.
    loss = (best - probabilities.amax(1, keepdim=True).log() - score).sum()
    if of_bias is not None:
        probabilities.scatter_add_(1, target, torch.full_like(score, -1.0))  # now the gradient of the scores
        of_bias += probabilities.sum(0)
        scores.copy_(probabilities)
    return loss, (score == best).sum()


def _compiled_loss(library: CDLL, scores: Tensor, targets: Tensor, of_bias: Tensor | None) -> tuple[Tensor, Tensor]:
    loss = torch.empty(len(scores), dtype=torch.float32)
    right = torch.empty(len(scores), dtype=torch.uint8)
    sizes = (ctypes.c_int64 * 4)(*scores.shape, scores.dtype == torch.bfloat16, torch.get_num_threads())
    targets = targets.contiguous()
    pointers = native.pointers(scores, targets, loss, right, of_bias)
    native.call(library.vocabulary_gradient, sizes, *pointers, of="the vocabulary's loss")
    return loss.sum(), right.sum()
