"""Attention over lattice nodes with relative spans (FLAT Eq. 11 and Eq. 1): exact, differentiable, never [N, N, D].

Two forms with the same results: a compiled one (`cige.nn.native`) for float32 on the CPU, and PyTorch operations around
`position_scores`, which has forms of its own, for everything else. tests/nn/test_span_attention.py holds both against
the literal equations.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from cige.nn import native
from cige.nn.fused_attention import fused_attention
from cige.nn.position_scores import position_scores
from cige.nn.relative_spans import RelativeSpans


@dataclass(frozen=True)
class SpanPairs:
    """What attention needs to know of each pair of nodes (i, j).

    Attributes:
        relation: float[U, D], the distinct rows of R (Eq. 8).
        spans: the relative spans that these rows stand for, and the row of each pair.
        n_nodes: int64[B], nodes of each sentence.
        hidden: bool[B, N, N], True where i may not see j besides padding, or None. A node that may see nothing at all
            reads zeros, and its probabilities are zeros.
    """

    relation: Tensor
    spans: RelativeSpans
    n_nodes: Tensor
    hidden: Tensor | None = None


def span_attention(
    query: Tensor, relation_query: Tensor, key: Tensor, value: Tensor, pairs: SpanPairs, *, dropout_prob: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Attend from every node to every node of its sentence.

    Args:
        query: float[H, B, N, d], q_i + u, scaled; d is the width of a head.
        relation_query: float[H, B, N, D], W_kR^T (q_i + v), scaled.
        key, value: float[H, B, N, d].
        pairs: relative spans and masks.
        dropout_prob: dropout on the probabilities (pass 0 outside training).

    Returns:
        float[B, N, H * d], and the probabilities float[H, B, N, N] (no gradient flows through these). Rows of
        padding hold no meaning.
    """
    # Under autocast some of these are half as wide as others, which the compiled kernel cannot tell from a pointer.
    query, relation_query, key, value, relation = map(_widened, (query, relation_query, key, value, pairs.relation))
    if dropout_prob == 0 and (library := _native_for(query, relation)) is not None:
        out, probabilities = _NativeAttention.apply(library, query, relation_query, key, value, relation, pairs)
        return out.flatten(2), probabilities
    position = position_scores(relation_query, relation, pairs.spans.index, pairs.spans.query_reach)
    unseen, sees_nothing = _unseen(pairs)
    score = (query @ key.transpose(2, 3) + position).masked_fill(unseen, float("-inf"))  # [H, B, N, N]
    probabilities = torch.softmax(score, -1)
    if sees_nothing is not None:
        probabilities = probabilities.masked_fill(sees_nothing, 0.0)
    out = torch.dropout(probabilities, dropout_prob, train=dropout_prob > 0) @ value  # [H, B, N, d]
    return out.permute(1, 2, 0, 3).flatten(2), probabilities.detach()


def biased_attention(
    query: Tensor,
    bias: Tensor,
    key: Tensor,
    value: Tensor,
    pairs: SpanPairs,
    *,
    dropout_prob: float = 0.0,
    with_attention: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """The same attention where a pair's position score is a number a head, whatever the query.

    Args:
        query: float[H, B, N, d], q_i + u, scaled.
        bias: float[H, U], the position score of each distinct relative span.
        key, value, pairs, dropout_prob: as in `span_attention`.
        with_attention: return the probabilities; without, they are never stored.

    Returns:
        float[B, N, H * d], and the probabilities float[H, B, N, N] (no gradient) or None.
    """
    unseen, sees_nothing = _unseen(pairs)
    mask = bias[:, pairs.spans.index].to(query.dtype).masked_fill(unseen, float("-inf"))  # [H, B, N, N]
    out = fused_attention(query, key, value, mask, scale=1.0, dropout_prob=dropout_prob)
    probabilities = None
    if with_attention:
        probabilities = torch.softmax(query @ key.transpose(2, 3) + mask, -1).detach()
    if sees_nothing is not None:
        out = out.masked_fill(sees_nothing, 0.0)
        probabilities = None if probabilities is None else probabilities.masked_fill(sees_nothing, 0.0)
    return out.permute(1, 2, 0, 3).flatten(2), probabilities


def _widened(x: Tensor) -> Tensor:
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def _unseen(pairs: SpanPairs) -> tuple[Tensor, Tensor | None]:
    """What to leave out of the softmax, bool[B, N or 1, N]: padding and hidden pairs.

    And bool[B, N, 1], the nodes from which everything is hidden, or None where nothing is. Their rows are left in, so
    that the softmax is no 0 / 0, and their results are to be set to zero.
    """
    node = torch.arange(pairs.spans.index.shape[1], device=pairs.spans.index.device)
    # An empty sentence still sees one node, or its softmax would be 0 / 0.
    padding = (node >= pairs.n_nodes.clamp(min=1)[:, None])[:, None, :]
    if pairs.hidden is None:
        return padding, None
    unseen = padding | (pairs.hidden & (node < pairs.n_nodes[:, None])[:, :, None])
    sees_nothing = unseen.all(-1, keepdim=True)
    return unseen & ~sees_nothing, sees_nothing


def _native_for(query: Tensor, relation: Tensor) -> Any:
    """The compiled kernel where it applies: float32 on the CPU and a width in whole vectors."""
    if query.device.type != "cpu" or query.dtype != torch.float32 or relation.shape[1] % native.LANES:
        return None
    return native.load()


class _NativeAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        library: Any,
        query: Tensor,
        relation_query: Tensor,
        key: Tensor,
        value: Tensor,
        relation: Tensor,
        pairs: SpanPairs,
    ) -> tuple[Tensor, Tensor]:
        inputs = [x.contiguous() for x in (query, relation_query, key, value, relation)]
        index, n_nodes = pairs.spans.index.contiguous(), pairs.n_nodes.long().contiguous()
        hidden = pairs.hidden.to(torch.uint8).contiguous() if pairs.hidden is not None else None
        n_heads, n_batch, n, width = query.shape
        probabilities = query.new_zeros(n_heads, n_batch, n, n)
        out = query.new_zeros(n_batch, n, n_heads, width)
        sizes = _sizes(query, relation)
        pointers = _pointers(*inputs, index, n_nodes, hidden, probabilities, out)
        if library.span_attention_forward(sizes, *pointers):
            raise MemoryError("attention: no memory for a work buffer; use smaller batches")
        ctx.library = library
        ctx.save_for_backward(*inputs, index, n_nodes, probabilities)
        ctx.mark_non_differentiable(probabilities)
        return out, probabilities

    @staticmethod
    def backward(ctx: Any, grad_out: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        *inputs, index, n_nodes, probabilities = ctx.saved_tensors
        query, relation = inputs[0], inputs[4]
        gradients = [torch.zeros_like(x) for x in inputs]
        pointers = _pointers(*inputs, index, n_nodes, probabilities, grad_out.contiguous(), *gradients)
        if ctx.library.span_attention_backward(_sizes(query, relation), *pointers):
            raise MemoryError("attention: no memory for a work buffer; use smaller batches")
        return None, *gradients, None


def _sizes(query: Tensor, relation: Tensor) -> Any:
    n_heads, n_batch, n, width = query.shape
    numbers = (n_heads, n_batch, n, width, relation.shape[1], relation.shape[0], torch.get_num_threads())
    return (ctypes.c_int64 * len(numbers))(*numbers)


def _pointers(*tensors: Tensor | None) -> list[int | None]:
    return [t.data_ptr() if t is not None else None for t in tensors]
