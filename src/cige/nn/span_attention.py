"""Attention over lattice nodes with relative spans (FLAT Eq. 11 and Eq. 1), exact, without a tensor [N, N, D].

There are two implementations with the same results: compiled code (`cige.nn.native`) for float32 on the CPU without
dropout, and PyTorch operations with `position_scores` for everything else. tests/nn/test_span_attention.py compares
both with the literal equations.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from cige.nn import native
from cige.nn.fused_attention import fused_attention
from cige.nn.position_scores import position_scores
from cige.nn.relative_spans import RelativeSpans

HEADS = 8  # the compiled kernel reads heads in groups of this size


@dataclass(frozen=True)
class SpanPairs:
    """The relations between pairs of nodes (i, j), and which of the pairs are visible.

    Attributes:
        relation: float[U, D], the distinct rows of R (Eq. 8).
        spans: the relative spans of these rows, and the row of each pair.
        n_nodes: int64[B], number of nodes of each sentence, all of which are keys.
        hidden: bool[B, Q, N], True if i cannot attend to j, in addition to padding; None if there are no such pairs.
            For a node that cannot attend to any node, the output and the probabilities are zeros.
        n_queries: int64[B], number of nodes of each sentence, from the first, that are queries; None: all of them.
    """

    relation: Tensor
    spans: RelativeSpans
    n_nodes: Tensor
    hidden: Tensor | None = None
    n_queries: Tensor | None = None

    @property
    def n_asking(self) -> Tensor:
        """int64[B]: number of queries of each sentence."""
        return self.n_nodes if self.n_queries is None else self.n_queries


def span_attention(
    query: Tensor,
    position_query: Tensor,
    key: Tensor,
    value: Tensor,
    pairs: SpanPairs,
    relation_key: Tensor,
    *,
    dropout_prob: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Attend from the query nodes to every node of their sentence.

    Args:
        query: float[H, B, Q, d], q_i + u, scaled; d is the width of a head.
        position_query: float[H, B, Q, d], q_i + v, scaled.
        key, value: float[H, B, N, d].
        pairs: relative spans and masks.
        relation_key: float[H, d, D], W_kR.
        dropout_prob: dropout on the probabilities (0 outside training).

    Returns:
        float[B, Q, H * d], and the probabilities float[H, B, Q, N] (no gradient flows through these). Rows of
        padding are undefined.
    """
    # Under autocast, the dtypes differ, which the compiled kernel cannot detect from pointers.
    query, position_query, key, value = map(_widened, (query, position_query, key, value))
    relation, relation_key = _widened(pairs.relation), _widened(relation_key)
    if dropout_prob == 0 and (library := _native_for(query)) is not None:
        # W_kR R is computed once for each distinct row: a pair then takes D products instead of H * D.
        n_heads = len(query)
        in_groups = (0, -n_heads % HEADS)
        with torch.autocast("cpu", enabled=False):  # the kernel reads float32
            table = (relation @ relation_key.flatten(0, 1).t()).view(len(relation), n_heads, -1)  # [U, H, d]
        table = F.pad(table.transpose(1, 2), in_groups)  # [U, d, H and zeros]
        position = F.pad(position_query.permute(1, 2, 3, 0), in_groups)  # [B, Q, d, H and zeros]
        out, probabilities = _NativeAttention.apply(library, query, position, key, value, table, pairs)
        return out.flatten(2), probabilities
    # (q + v) . (W_kR R) = (W_kR^T (q + v)) . R: the product with W_kR is computed once per query, not once per pair.
    relation_query = position_query @ relation_key[:, None]  # [H, B, Q, D]
    position = position_scores(relation_query, relation, pairs.spans.index, pairs.spans.query_reach)
    unseen, sees_nothing = _unseen(pairs)
    score = (query @ key.transpose(2, 3) + position).masked_fill(unseen, float("-inf"))  # [H, B, Q, N]
    probabilities = torch.softmax(score, -1)
    if sees_nothing is not None:
        probabilities = probabilities.masked_fill(sees_nothing, 0.0)
    out = torch.dropout(probabilities, dropout_prob, train=dropout_prob > 0) @ value  # [H, B, Q, d]
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
    """Like `span_attention`, but the position score of a pair is one number per head that does not depend on the query.

    Args:
        query: float[H, B, Q, d], q_i + u, scaled.
        bias: float[H, U], the position score of each distinct relative span.
        key, value, pairs, dropout_prob: as in `span_attention`.
        with_attention: whether to return the probabilities; otherwise they are not stored.

    Returns:
        float[B, Q, H * d], and the probabilities float[H, B, Q, N] (no gradient) or None.
    """
    unseen, sees_nothing = _unseen(pairs)
    mask = bias[:, pairs.spans.index].to(query.dtype).masked_fill(unseen, float("-inf"))  # [H, B, Q, N]
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
    """bool[B, Q or 1, N]: the pairs to exclude from the softmax, which are padding and hidden pairs.

    Also returns bool[B, Q, 1], the nodes that cannot attend to any node, or None if there are none. Their rows are not
    excluded, so that the softmax is not 0 / 0, and the caller must set their results to zero.
    """
    _, n_queries, n_keys = pairs.spans.index.shape
    node = torch.arange(n_keys, device=pairs.spans.index.device)
    # An empty sentence attends to one position, so that its softmax is not 0 / 0.
    padding = (node >= pairs.n_nodes.clamp(min=1)[:, None])[:, None, :]
    if pairs.hidden is None:
        return padding, None
    unseen = padding | (pairs.hidden & (node[:n_queries] < pairs.n_asking[:, None])[:, :, None])
    sees_nothing = unseen.all(-1, keepdim=True)
    return unseen & ~sees_nothing, sees_nothing


def _native_for(query: Tensor) -> ctypes.CDLL | None:
    """The compiled kernel, or None if it does not apply: it computes in float32 on the CPU."""
    return native.load() if query.device.type == "cpu" and query.dtype == torch.float32 else None


class _NativeAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        library: ctypes.CDLL,
        query: Tensor,
        position: Tensor,
        key: Tensor,
        value: Tensor,
        table: Tensor,
        pairs: SpanPairs,
    ) -> tuple[Tensor, Tensor]:
        inputs = [x.contiguous() for x in (query, position, key, value, table)]
        index = pairs.spans.index.contiguous()
        counts = [x.long().contiguous() for x in (pairs.n_asking, pairs.n_nodes)]
        hidden = pairs.hidden.to(torch.uint8).contiguous() if pairs.hidden is not None else None
        n_heads, n_batch, n_queries, width = query.shape
        probabilities = query.new_zeros(n_heads, n_batch, n_queries, key.shape[2])
        out = query.new_zeros(n_batch, n_queries, n_heads, width)
        pointers = native.pointers(*inputs, index, *counts, hidden, probabilities, out)
        native.call(library.span_attention_forward, _sizes(query, key, table), *pointers, of="attention")
        ctx.library = library
        ctx.save_for_backward(*inputs, index, *counts, probabilities)
        ctx.mark_non_differentiable(probabilities)
        return out, probabilities

    @staticmethod
    def backward(ctx: Any, grad_out: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        *inputs, index, n_queries, n_nodes, probabilities = ctx.saved_tensors
        query, _, key, _, table = inputs
        gradients = [torch.zeros_like(x) for x in inputs]
        grad_out = grad_out.contiguous()
        pointers = native.pointers(*inputs, index, n_queries, n_nodes, probabilities, grad_out, *gradients)
        native.call(ctx.library.span_attention_backward, _sizes(query, key, table), *pointers, of="attention")
        return None, *gradients, None


def _sizes(query: Tensor, key: Tensor, table: Tensor) -> ctypes.Array[ctypes.c_int64]:
    n_heads, n_batch, n_queries, width = query.shape
    numbers = (n_heads, n_batch, n_queries, key.shape[2], width, len(table), torch.get_num_threads())
    return (ctypes.c_int64 * len(numbers))(*numbers)
