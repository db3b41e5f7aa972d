"""Attention along the edges of a sparse graph: sums, products and softmaxes over the neighbours of each node.

    scores of edges           dot_products(q, k): q_i . k_j         or  from_queries(a) + from_keys(b): a_i + b_j
    softmax per query         softmax_by_query(scores)
    sum over the neighbours   weighted_sums(p, v): sum over j of p_ij v_j
    all of these              edge_attention(q, k, v)

The nodes of a lattice have some eight neighbours each, in a batch of a thousand nodes, so that masked scores between
all pairs would be mostly padding. A sum over neighbours is PyTorch's `embedding_bag` (a bag is a node, or a node in one
head), which reads the rows of `v` where they are instead of copying them for each edge; it is ten times as fast as a
gather and a scatter. Its own gradient is slow, because it sorts the indices each time. Here, the gradient is another
sum over the edges in the opposite direction, which are sorted once for a batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from cige.nn.dropout import Dropout
from cige.nn.masked_attention import Relations


@dataclass(frozen=True)
class Edges:
    """E edges from queries to keys, sorted by query.

    Attributes:
        query: int64[E], ascending, below n_queries.
        key: int64[E], below n_keys.
    """

    query: Tensor
    key: Tensor
    n_queries: int
    n_keys: int

    @cached_property
    def bounds(self) -> Tensor:
        """int64[n_queries + 1]: the edges of query i are bounds[i] to bounds[i + 1] - 1."""
        return torch.searchsorted(self.query, torch.arange(self.n_queries + 1, device=self.query.device))

    @cached_property
    def reverse(self) -> tuple[Edges, Tensor]:
        """The edges from keys to queries, and int64[E]: the number here of each of them."""
        order = self.key.argsort(stable=True)
        return Edges(self.key[order], self.query[order], self.n_keys, self.n_queries), order

    def bags(self, n_heads: int) -> tuple[Tensor, Tensor]:
        """Indices int64[H * E] of rows [n_keys * H], head by head, and where each head's queries begin."""
        if n_heads not in self._bags:
            head = torch.arange(n_heads, device=self.key.device)[:, None]
            begins = (head * len(self.key) + self.bounds[:-1]).flatten()
            self._bags[n_heads] = (self.key * n_heads + head).flatten(), begins
        return self._bags[n_heads]

    @cached_property
    def _bags(self) -> dict[int, tuple[Tensor, Tensor]]:
        return {}

    def where(self, holds: Tensor) -> Edges:
        """The edges for which bool[E] holds."""
        places = holds.nonzero()[:, 0]
        query, key = self.query.index_select(0, places), self.key.index_select(0, places)
        return Edges(query, key, self.n_queries, self.n_keys)

    def of_queries(self, rows: Tensor) -> Edges:
        """The same edges with queries counted among `rows` int64[n], ascending, which contain all that have edges."""
        numbers = torch.empty(self.n_queries, dtype=torch.int64, device=rows.device)
        numbers[rows] = torch.arange(len(rows), device=rows.device)
        return Edges(numbers.index_select(0, self.query), self.key, len(rows), self.n_keys)

    def by_head(self, n_heads: int) -> Edges:
        """int64[E * H] edges, one for each head, to rows key * H + head of [n_keys * H]."""
        head = torch.arange(n_heads, device=self.key.device)
        keys = (self.key[:, None] * n_heads + head).flatten()
        return Edges(self.query.repeat_interleave(n_heads), keys, self.n_queries, self.n_keys * n_heads)

    def with_one_more(self, key: Tensor, n_keys: int) -> tuple[Edges, Tensor]:
        """The edges and, after those of each query, one to its own `key` int64[n_queries].

        Also returns int64[E], the numbers of the former edges among them; n_keys is the new number of keys.
        """
        number = torch.arange(self.n_queries, device=key.device)
        places, added = torch.arange(len(self.query), device=key.device) + self.query, self.bounds[1:] + number
        queries, keys = (x.new_empty(len(x) + len(number)) for x in (self.query, self.key))
        queries[places], queries[added] = self.query, number
        keys[places], keys[added] = self.key, key
        return Edges(queries, keys, self.n_queries, n_keys), places


def dot_products(query: Tensor, key: Tensor, edges: Edges, n_heads: int) -> Tensor:
    """float[E, H]: the product of query and key in each head, from float[n_queries, H * d] and float[n_keys, H * d]."""
    return _DotProducts.apply(query, key, edges, n_heads)


def weighted_sums(weights: Tensor, values: Tensor, edges: Edges, n_heads: int) -> Tensor:
    """float[n_queries, H * d]: for each query and head the sum over edges of weights float[E, H] * values of the key,
    float[n_keys, H * d]."""
    return _WeightedSums.apply(weights, values, edges, n_heads)


def sum_over_heads(weights: Tensor, values: Tensor, edges: Edges, n_heads: int) -> Tensor:
    """float[n_queries, d]: the sum of the heads of `weighted_sums`."""
    by_head, by_row = edges.by_head(n_heads), values.reshape(edges.n_keys * n_heads, values.shape[1] // n_heads)
    return _WeightedSums.apply(weights.reshape(-1, 1), by_row, by_head, 1)


def from_queries(x: Tensor, edges: Edges) -> Tensor:
    """float[E, ..]: the row of `x` of each edge's query."""
    return _Rows.apply(x, edges.query, edges, True)


def from_keys(x: Tensor, edges: Edges) -> Tensor:
    """float[E, ..]: the row of `x` of each edge's key."""
    return _Rows.apply(x, edges.key, edges, False)


def softmax_by_query(scores: Tensor, edges: Edges) -> Tensor:
    """float[E, H]: a softmax over the edges of each query, in float32 for shorter scores."""
    return _Softmax.apply(scores.float() if scores.dtype in (torch.bfloat16, torch.float16) else scores, edges)


def edge_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    edges: Edges,
    n_heads: int,
    *,
    relations: Relations | None = None,
    dropout: Dropout | None = None,
) -> tuple[Tensor, Tensor]:
    """`masked_attention` along edges; a query without edges returns zeros.

    Args:
        query: float[n_queries, H * d], scaled.
        key, value: float[n_keys, H * d].
        relations: the additions for the relation of each edge.
        dropout: dropout on the probabilities.

    Returns:
        float[n_queries, H * d], and the probabilities float[E, H] (no gradient flows through these).
    """
    scores = dot_products(query, key, edges, n_heads)
    pair, n_relations = edges.query, 1  # the query and the relation of each edge, in [n_queries * R]
    if relations is not None:
        n_relations = relations.keys.shape[-2]
        pair = edges.query * n_relations + relations.codes
        by_head = query.unflatten(1, (n_heads, -1)).transpose(0, 1)  # [H, n_queries, d]
        products = by_head @ relations.keys.transpose(-1, -2)  # [H, n_queries, R]
        scores = scores + products.permute(1, 2, 0).reshape(-1, n_heads).index_select(0, pair)
    probabilities = softmax_by_query(scores, edges)
    weights = dropout(probabilities) if dropout is not None else probabilities
    read = weighted_sums(weights, value, edges, n_heads)
    if relations is not None and relations.values is not None:
        shares = weights.new_zeros(edges.n_queries * n_relations, n_heads).index_add(0, pair, weights)
        by_head = shares.view(-1, n_relations, n_heads).permute(2, 0, 1) @ relations.values  # [H, n_queries, d]
        read = read + by_head.transpose(0, 1).flatten(1)
    return read, probabilities.detach()


def _sums(weights: Tensor, values: Tensor, edges: Edges, n_heads: int) -> Tensor:
    """`weighted_sums` without a gradient."""
    width = values.shape[1] // n_heads
    if not len(edges.key):
        return values.new_zeros(edges.n_queries, n_heads * width)
    indices, begins = edges.bags(n_heads)
    summed = F.embedding_bag(
        indices,
        values.reshape(edges.n_keys * n_heads, width),
        begins,
        mode="sum",
        per_sample_weights=weights.to(values.dtype).t().flatten(),
    )  # [H * n_queries, d]
    return summed.view(n_heads, edges.n_queries, width).transpose(0, 1).reshape(edges.n_queries, n_heads * width)


def _sum_rows(x: Tensor, edges: Edges) -> Tensor:
    """float[n_queries, H]: the sum of the rows float[E, H] of each query's edges."""
    if not len(x):
        return x.new_zeros(edges.n_queries, x.shape[1])
    return F.embedding_bag(torch.arange(len(x), device=x.device), x, edges.bounds[:-1], mode="sum")


def _dots(query: Tensor, key: Tensor, edges: Edges, n_heads: int) -> Tensor:
    """`dot_products` without a gradient."""
    products = query.index_select(0, edges.query).mul_(key.index_select(0, edges.key))  # [E, H * d]
    return products.unflatten(1, (n_heads, -1)).sum(-1)


class _DotProducts(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, edges: Edges, n_heads: int) -> Tensor:
        ctx.save_for_backward(query, key)
        ctx.edges, ctx.n_heads = edges, n_heads
        return _dots(query, key, edges, n_heads)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        query, key = ctx.saved_tensors
        reverse, order = ctx.edges.reverse
        of_query = _sums(gradient, key, ctx.edges, ctx.n_heads)
        return of_query, _sums(gradient[order], query, reverse, ctx.n_heads), None, None


class _WeightedSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, values: Tensor, edges: Edges, n_heads: int) -> Tensor:
        ctx.save_for_backward(weights, values)
        ctx.edges, ctx.n_heads = edges, n_heads
        return _sums(weights, values, edges, n_heads)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        weights, values = ctx.saved_tensors
        reverse, order = ctx.edges.reverse
        gradient = gradient.contiguous()
        of_weights = _dots(gradient, values, ctx.edges, ctx.n_heads).to(weights.dtype)
        return of_weights, _sums(weights[order], gradient, reverse, ctx.n_heads), None, None


class _Rows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Tensor, edges: Edges, by_query: bool) -> Tensor:
        ctx.edges, ctx.by_query = edges, by_query
        return x.index_select(0, rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        if ctx.by_query:
            return _sum_rows(gradient.contiguous(), ctx.edges), None, None, None
        reverse, order = ctx.edges.reverse
        return _sum_rows(gradient[order], reverse), None, None, None


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, edges: Edges) -> Tensor:
        if not len(scores):
            shares = scores.clone()
        else:
            largest = torch.segment_reduce(scores, "max", offsets=edges.bounds, axis=0)
            shares = (scores - largest.index_select(0, edges.query)).exp_()
            shares /= _sum_rows(shares, edges).index_select(0, edges.query)
        ctx.save_for_backward(shares)
        ctx.edges = edges
        return shares

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (shares,) = ctx.saved_tensors
        weighted = shares * gradient
        return weighted - shares * _sum_rows(weighted, ctx.edges).index_select(0, ctx.edges.query), None
