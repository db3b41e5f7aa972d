"""The softmax of a large vocabulary as a Triton kernel, which replaces scores by the gradient of -log p(target).

A program reads one row twice, for the sum and for the gradient, and computes in float32 whatever the type of the scores
is. It moves four bytes per byte of scores, whereas PyTorch operations over a float32 copy move twenty.

Importing this file needs Triton, which comes with PyTorch's CUDA builds. Without CUDA the kernel runs in Triton's
interpreter (TRITON_INTERPRET=1), which is how it is tested.
"""

from __future__ import annotations

import torch
import triton
from torch import Tensor
from triton import language as tl

BLOCK = 1024  # scores per load; rows begin at multiples of it, so that loads need no mask and are 16 bytes wide


def score_buffer(n_rows: int, n_tokens: int, *, like: Tensor) -> Tensor:
    """[n_rows, n_tokens], uninitialised, in the memory layout of `loss_and_gradient`, on the device of `like`."""
    padded = -(-n_tokens // BLOCK) * BLOCK
    whole = like.new_empty(n_rows, padded)
    whole[:, n_tokens:] = float("-inf")
    return whole[:, :n_tokens]


def loss_and_gradient(scores: Tensor, targets: Tensor, of_bias: Tensor | None) -> tuple[Tensor, Tensor]:
    """(sum of losses, number of targets with the highest score); arguments as for `vocabulary_loss.LossFunction`.

    Args:
        scores: rows of a `score_buffer`.
    """
    n_rows, n_tokens = scores.shape
    losses = torch.empty(n_rows, dtype=torch.float32, device=scores.device)
    rights = torch.empty(n_rows, dtype=torch.int32, device=scores.device)
    with_gradient = of_bias is not None
    if n_rows:
        _loss_kernel[(n_rows,)](
            scores, targets.contiguous(), losses, rights, n_tokens, scores.stride(0), with_gradient, BLOCK=BLOCK
        )
    if of_bias is not None:
        of_bias += scores.sum(0, dtype=of_bias.dtype)
    return losses.sum(), rights.sum()


@triton.jit
def _loss_kernel(scores, targets, losses, rights, n_tokens, stride, WITH_GRADIENT: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    place = scores + row * stride
    target = tl.load(targets + row)
    of_target = tl.load(place + target).to(tl.float32)
    column = tl.arange(0, BLOCK)
    top, total = float("-inf"), 0.0
    for start in range(0, stride, BLOCK):
        score = tl.load(place + start + column).to(tl.float32)
        highest = tl.maximum(top, tl.max(score, 0))
        total = total * tl.exp(top - highest) + tl.sum(tl.exp(score - highest), 0)
        top = highest
    tl.store(losses + row, tl.log(total) + top - of_target)
    tl.store(rights + row, (of_target == top).to(tl.int32))
    if WITH_GRADIENT:
        for start in range(0, stride, BLOCK):
            score = tl.load(place + start + column).to(tl.float32)
            gradient = tl.exp(score - top) / total - tl.where(start + column == target, 1.0, 0.0)
            # The values beyond the last token stay -inf, for the next scores in the buffer.
            gradient = tl.where(start + column < n_tokens, gradient, float("-inf"))
            tl.store(place + start + column, gradient.to(scores.dtype.element_ty))
