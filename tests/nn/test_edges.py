"""Attention along edges, against loops over them, and its gradients against finite differences."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from cige.nn.edges import (
    Edges,
    dot_products,
    edge_attention,
    from_keys,
    from_queries,
    softmax_by_query,
    sum_over_heads,
    weighted_sums,
)
from cige.nn.masked_attention import Relations, masked_attention

QUERY, KEY = [0, 0, 1, 1, 1, 3, 3, 4, 4], [1, 2, 0, 5, 1, 1, 1, 4, 3]  # query 2 has no edge; 3 has the same one twice
N_QUERIES, N_KEYS, N_HEADS, WIDTH = 5, 6, 2, 3
NONE = torch.zeros(0, dtype=torch.int64)


def edges() -> Edges:
    return Edges(torch.tensor(QUERY), torch.tensor(KEY), N_QUERIES, N_KEYS)


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape) + sum(shape)), dtype=torch.float64)


def test_equal_loops_over_edges():
    query, key, weights = drawn(N_QUERIES, N_HEADS * WIDTH), drawn(N_KEYS, N_HEADS * WIDTH), drawn(9, N_HEADS)
    dots, shares = dot_products(query, key, edges(), N_HEADS), softmax_by_query(weights, edges())
    sums = torch.zeros(N_QUERIES, N_HEADS, WIDTH, dtype=torch.float64)
    for e, (i, j) in enumerate(zip(QUERY, KEY, strict=True)):
        torch.testing.assert_close(from_queries(query, edges())[e], query[i])
        torch.testing.assert_close(from_keys(key, edges())[e], key[j])
        for h in range(N_HEADS):
            part = slice(h * WIDTH, (h + 1) * WIDTH)
            torch.testing.assert_close(dots[e, h], query[i, part] @ key[j, part])
            total = sum(weights[k, h].exp() for k, other in enumerate(QUERY) if other == i)
            torch.testing.assert_close(shares[e, h], weights[e, h].exp() / total)
            sums[i, h] += weights[e, h] * key[j, part]
    torch.testing.assert_close(weighted_sums(weights, key, edges(), N_HEADS), sums.flatten(1))
    torch.testing.assert_close(sum_over_heads(weights, key, edges(), N_HEADS), sums.sum(1))
    assert not sums[2].any()


def test_a_softmax_of_large_scores_is_finite():
    scores = torch.full((9, 1), 2000.0)
    shares = softmax_by_query(scores - torch.arange(9.0)[:, None], edges())
    assert shares.isfinite().all()
    torch.testing.assert_close(shares[:2, 0], torch.tensor([0.0, -1.0]).softmax(0))


@pytest.mark.parametrize("graph", [edges(), Edges(NONE, NONE, N_QUERIES, N_KEYS)], ids=["edges", "none"])
def test_gradients_equal_finite_differences(graph):
    query, key, weights = (
        x.requires_grad_() for x in (drawn(N_QUERIES, 6), drawn(N_KEYS, 6), drawn(len(graph.query), N_HEADS))
    )
    check = torch.autograd.gradcheck
    assert check(lambda q, k: dot_products(q, k, graph, N_HEADS), (query, key))
    assert check(lambda w, v: weighted_sums(w, v, graph, N_HEADS), (weights, key))
    assert check(lambda w, v: sum_over_heads(w, v, graph, N_HEADS), (weights, key))
    assert check(lambda q: from_queries(q, graph), (query,))
    assert check(lambda k: from_keys(k, graph), (key,))
    if len(graph.query):
        assert check(lambda w: softmax_by_query(w, graph), (weights,))


def test_one_more_edge_of_each_query_is_its_last():
    more, places = edges().with_one_more(torch.arange(10, 15), 15)
    assert more.query.tolist() == [0, 0, 0, 1, 1, 1, 1, 2, 3, 3, 3, 4, 4, 4] and more.n_keys == 15
    assert more.key.tolist() == [1, 2, 10, 0, 5, 1, 11, 12, 1, 1, 13, 4, 3, 14]
    assert more.key[places].tolist() == KEY and more.query[places].tolist() == QUERY


def test_queries_are_counted_among_rows():
    some = edges().where(torch.tensor([q in (0, 3) for q in QUERY]))
    assert some.query.tolist() == [0, 0, 3, 3] and some.key.tolist() == [1, 2, 1, 1]
    counted = some.of_queries(torch.tensor([0, 2, 3]))
    assert counted.query.tolist() == [0, 0, 2, 2] and counted.n_queries == 3


def test_weights_may_be_in_bfloat16():
    weights, values = drawn(9, N_HEADS).bfloat16(), drawn(N_KEYS, 6)
    exact = weighted_sums(weights.double(), values, edges(), N_HEADS)
    rough = weighted_sums(weights, values.bfloat16(), edges(), N_HEADS)
    torch.testing.assert_close(rough.double(), exact, atol=0.05, rtol=0.02)


@pytest.mark.parametrize("kind", ["no relations", "relations", "of keys alone", "shared by the heads"])
def test_attention_equals_that_of_a_mask(kind):
    pairs = sorted(set(zip(QUERY, KEY, strict=True)))
    graph = Edges(torch.tensor([i for i, _ in pairs]), torch.tensor([j for _, j in pairs]), N_QUERIES, N_KEYS)
    query, key, value = drawn(N_QUERIES, 6), drawn(N_KEYS, 6), drawn(N_KEYS, 6) + 1
    codes = torch.arange(len(pairs)) % 3
    keys, values = drawn(N_HEADS, 3, WIDTH), drawn(N_HEADS, 3, WIDTH) * 2
    allowed, dense = torch.zeros(1, N_QUERIES, N_KEYS, dtype=torch.bool), torch.zeros(1, N_QUERIES, N_KEYS).long()
    for (i, j), code in zip(pairs, codes.tolist(), strict=True):
        allowed[0, i, j], dense[0, i, j] = True, code
    given, expected = None, None
    if kind == "shared by the heads":
        given = Relations(codes, keys[0], values[0])
        expected = Relations(dense, keys[:1].expand_as(keys), values[:1].expand_as(values))
    elif kind != "no relations":
        of_values = None if kind == "of keys alone" else values
        given, expected = Relations(codes, keys, of_values), Relations(dense, keys, of_values)

    def by_head(x: Tensor) -> Tensor:
        return x.view(1, len(x), N_HEADS, WIDTH).transpose(1, 2)

    read, shares = edge_attention(query, key, value, graph, N_HEADS, relations=given)
    of_mask, probabilities = masked_attention(by_head(query), by_head(key), by_head(value), allowed, relations=expected)
    torch.testing.assert_close(read, of_mask[0])
    torch.testing.assert_close(shares, torch.stack([probabilities[0, :, i, j] for i, j in pairs]))
