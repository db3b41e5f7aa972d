"""The position term of FLAT's attention (Eq. 11): relation_query . R_ij for every pair, from the distinct rows of R.

There are three exact implementations with the same results, forward and backward. None creates an [N, N, D] tensor of a
whole batch:

gathered  reads rows of R for a few query nodes at a time: N^2 D numbers are moved, in chunks that fit into the cache
grouped   queries of one span length use only the rows of R for that length, so each group is one matrix product, in
          which every pair looks up its number: more arithmetic, but in matrix products, and N^2 H numbers are moved
triton    a kernel that reads rows of R into registers and multiplies them there (position_scores_triton.py)

`position_scores` chooses one; tests/nn/test_position_scores.py compares all of them with the definition.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable, Iterator
from typing import Any, Literal

import torch
from torch import Tensor

Form = Literal["gathered", "grouped", "triton"]

# Numbers in memory at once: 4M floats (16 MB) are close to the size of a CPU's cache and far from memory limits.
CHUNK_FLOATS = 4_000_000
# Grouping multiplies a query with U / n_reaches rows of R where gathering fetches N. Measured on one core of a CPU at
# D = 160, 8 heads, forward / backward, times faster: at 4.6 N rows 1.4 / 1.1 to 1.4 (16 sentences of 80 nodes to 4 of
# 400), at 10 N rows 0.8 / 0.8; and 0.1 to 0.3 / 0.2 to 2.2 for one sentence of 40 to 80 nodes, whose gathered rows
# never leave the cache.
GROUPED_PAYS = 6.0


def position_scores(query: Tensor, relation: Tensor, index: Tensor, query_reach: Tensor) -> Tensor:
    """float[H, B, Q, N]: query[h, b, i] . relation[index[b, i, j]].

    Args:
        query: float32[H, B, Q, D], or narrower under autocast, for Q query nodes.
        relation: float32[U, D], the distinct rows of R.
        index: int32[B, Q, N], in [0, U), for N key nodes.
        query_reach: int64[U], length (tail - head) of the query span of each row; all pairs of a query have the same.
    """
    form = choose_form(query, relation, query_reach, n_keys=index.shape[2])
    if form == "triton":
        from cige.nn.position_scores_triton import PositionScores

        return PositionScores.apply(query, relation, index)
    query = query.to(relation.dtype)  # under autocast, a product returned it in a narrower format
    if form == "grouped":
        return GroupedScores.apply(query, relation, index, query_reach)
    return GatheredScores.apply(query, relation, index)


def choose_form(query: Tensor, relation: Tensor, query_reach: Tensor, *, n_keys: int) -> Form:
    """The fastest implementation for a device and shape."""
    if query.is_cuda and importlib.util.find_spec("triton") is not None:
        return "triton"
    _, n_batch, n_queries, width = query.shape
    if n_batch * n_queries * n_keys * width <= CHUNK_FLOATS:
        return "gathered"
    n_reaches = len(torch.unique(query_reach))
    return "grouped" if len(relation) <= GROUPED_PAYS * n_reaches * n_keys else "gathered"


def _without_autocast(function: Callable[..., Any]) -> Callable[..., Any]:
    """A forward or backward method whose products keep the dtype of its inputs on every device."""

    @functools.wraps(function)
    def run(ctx: Any, first: Tensor, *rest: Tensor) -> Any:
        if not torch.amp.autocast_mode.is_autocast_available(first.device.type):
            return function(ctx, first, *rest)
        with torch.autocast(first.device.type, enabled=False):
            return function(ctx, first, *rest)

    return run


class GatheredScores(torch.autograd.Function):
    """Reads the rows of R for a chunk of query nodes, forward and backward."""

    @staticmethod
    @_without_autocast
    def forward(ctx: Any, query: Tensor, relation: Tensor, index: Tensor) -> Tensor:
        ctx.save_for_backward(query, relation, index)
        rows, pairs = query.flatten(1, 2), index.flatten(0, 1)  # [H, B * Q, D], [B * Q, N]
        parts = [
            torch.bmm(rows[:, part].transpose(0, 1), relation[pairs[part]].transpose(1, 2))  # [., H, N]
            for part in _chunks(len(pairs), pairs.shape[1] * query.shape[3])
        ]
        return torch.cat(parts).transpose(0, 1).unflatten(1, query.shape[1:3])

    @staticmethod
    @_without_autocast
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:  # type: ignore[override]
        query, relation, index = ctx.saved_tensors
        rows, pairs, grad_rows = query.flatten(1, 2), index.flatten(0, 1), grad.flatten(1, 2)
        width = query.shape[3]
        grad_query, grad_relation = torch.empty_like(rows), torch.zeros_like(relation)
        for part in _chunks(len(pairs), pairs.shape[1] * width):
            grad_part = grad_rows[:, part].transpose(0, 1)  # [., H, N]
            grad_query[:, part] = torch.bmm(grad_part, relation[pairs[part]]).transpose(0, 1)
            per_pair = torch.bmm(grad_part.transpose(1, 2), rows[:, part].transpose(0, 1))  # [., N, D]
            grad_relation.index_add_(0, pairs[part].reshape(-1), per_pair.view(-1, width))
        return grad_query.view_as(query), grad_relation, None


class GroupedScores(torch.autograd.Function):
    """One matrix product for the queries of each span length with the rows of R for that length."""

    @staticmethod
    @_without_autocast
    def forward(ctx: Any, query: Tensor, relation: Tensor, index: Tensor, query_reach: Tensor) -> Tensor:
        ctx.save_for_backward(query, relation, index, query_reach)
        n_heads, rows = len(query), query.flatten(1, 2)  # [H, B * Q, D]
        scores = query.new_empty(n_heads, rows.shape[1], index.shape[2])
        for nodes, table, columns in _groups(index, query_reach, n_heads):
            products = rows[:, nodes] @ relation[table].t()  # [H, ., rows of R of this length]
            scores[:, nodes] = products.gather(2, columns.expand(n_heads, -1, -1))
        return scores.unflatten(1, query.shape[1:3])

    @staticmethod
    @_without_autocast
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:  # type: ignore[override]
        query, relation, index, query_reach = ctx.saved_tensors
        n_heads, rows, grad_scores = len(query), query.flatten(1, 2), grad.flatten(1, 2)
        grad_rows, grad_relation = torch.empty_like(rows), torch.zeros_like(relation)
        for nodes, table, columns in _groups(index, query_reach, n_heads):
            grad_products = query.new_zeros(n_heads, len(nodes), len(table))
            grad_products.scatter_add_(2, columns.expand(n_heads, -1, -1), grad_scores[:, nodes])
            grad_rows[:, nodes] = grad_products @ relation[table]
            per_row = grad_products.flatten(0, 1).t() @ rows[:, nodes].flatten(0, 1)
            grad_relation.index_add_(0, table, per_row)
        return grad_rows.view_as(query), grad_relation, None, None


def _groups(index: Tensor, query_reach: Tensor, n_heads: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """For each span length: its query nodes in [0, B * Q), its rows of R, and int64[., N] indices of these rows."""
    pairs = index.flatten(0, 1)  # [B * Q, N]
    node_reach = query_reach[pairs[:, 0].long()]
    place = torch.empty_like(query_reach)
    for reach in torch.unique(node_reach).tolist():
        nodes = (node_reach == reach).nonzero().squeeze(1)
        table = (query_reach == reach).nonzero().squeeze(1)
        place[table] = torch.arange(len(table), device=table.device)
        for part in _chunks(len(nodes), n_heads * len(table)):
            yield nodes[part], table, place[pairs[nodes[part]].long()]


def _chunks(n_rows: int, floats_per_row: int) -> list[slice]:
    """Divide rows into chunks of at most CHUNK_FLOATS numbers."""
    step = max(1, CHUNK_FLOATS // max(1, floats_per_row))
    return [slice(start, start + step) for start in range(0, n_rows, step)]
