"""LGN: against its equations written as loops over nodes and edges, and what its graphs let a character read."""

from __future__ import annotations

from dataclasses import replace

import pytest
import tiny
import torch
from torch import Tensor
from torch.nn import functional as F

from cige.models.lgn import Aggregation, DirectedGraph, LatticeCell, LgnConfig, LgnEncoder
from cige.models.model import LatticeModel
from cige.nn.edges import Edges

SMALL = LgnConfig(
    width=8, n_steps=3, n_heads=2, head_width=6, place_width=4, embed_dropout_prob=0.0, word_dropout_prob=0.0,
    attention_dropout_prob=0.0, cell_dropout_prob=0.0,
)  # fmt: skip
TEXT = "南京市长江大桥，重庆人和药店"
Word = tuple[int, int]  # first and last character


def made(**settings) -> LatticeModel:
    return tiny.model(config=replace(SMALL, **settings), architecture="lgn")


def attend(part: Aggregation, query: Tensor, keys: list[Tensor]) -> Tensor:
    """§3.2 for one query: multi-head attention over `keys`, LeakyReLU, residual and normalisation."""
    heads = []
    for h in range(part.n_heads):
        rows = slice(h * 6, h * 6 + 6)
        q = part.query.weight[rows] @ query + part.query.bias[rows]
        scores = [q @ (part.key.weight[rows] @ key + part.key.bias[rows]) / 6**0.5 for key in keys]
        shares = torch.stack(scores).softmax(0)
        values = [part.value.weight[rows] @ key + part.value.bias[rows] for key in keys]
        heads.append(sum(a * v for a, v in zip(shares, values, strict=True)))
    out = part.output.weight @ torch.cat(heads) + part.output.bias
    return part.norm(query + torch.where(out > 0, out, 0.01 * out))


def update(cell: LatticeCell, states: list[Tensor], read: list[Tensor]) -> Tensor:
    z = torch.cat([*states, *read])
    *gates, new = (cell.gates.weight @ z + cell.gates.bias).split(len(states[0]))
    shares = torch.stack([torch.sigmoid(gate) for gate in gates]).softmax(0)
    return sum(a * x for a, x in zip(shares, [torch.tanh(new), *states], strict=True))


def slow_direction(
    graph: DirectedGraph, encoder: LgnEncoder, chars: Tensor, vectors: list[Tensor], words: list[Word], step: int
) -> list[list[Tensor]]:
    """The states of the characters, in the order of the text, at the start and after each of n_steps steps.

    `step` is 1 for the forward graph; for the backward one -1: all is read from the end.
    """
    n, parts = len(chars), encoder.parts
    order = list(range(n))[::step]
    nodes = dict(zip(order, graph.lstm(chars[order][None])[0][0], strict=True))
    edges = dict(enumerate(vectors))
    begins = [word[0] if step == 1 else word[1] for word in words]
    ends = [word[1] if step == 1 else word[0] for word in words]
    whole = sum([parts.no_word, *edges.values()]) / (len(words) + 1) + sum(nodes.values()) / n
    history: list[list[Tensor]] = [[nodes[t] for t in range(n)]]
    node_sum, edge_sum, whole_sum = dict(nodes), dict(edges), whole
    for k in range(len(graph.edges_to_node)):
        nothing = torch.cat([parts.no_word, torch.zeros(len(whole)), torch.zeros(4)])
        keys = [
            torch.cat([edges[w], nodes[begins[w]], parts.lengths.weight[min(last - first + 1, 5) - 1]])
            for w, (first, last) in enumerate(words)
        ]
        at_nodes = {
            t: attend(graph.edges_to_node[k], nodes[t], [nothing, *(keys[w] for w in edges if ends[w] == t)])
            for t in nodes
        }
        at_whole = [
            attend(graph.nodes_to_global[k], whole, list(nodes.values())),
            attend(graph.edges_to_global[k], whole, [parts.no_word, *edges.values()]),
        ]
        zero = torch.zeros(len(whole))
        new_nodes = {
            t: update(graph.node_cell, [nodes[t], nodes.get(t - step, zero)], [at_nodes[t], *at_whole]) for t in nodes
        }
        history.append([new_nodes[t] for t in range(n)])
        if k + 1 == len(graph.edges_to_node):
            return history
        new_edges = {}
        for w, (first, last) in enumerate(words):
            within = [
                torch.cat([nodes[t], parts.places.weight[0 if t == first else 2 if t == last else 1]])
                for t in range(first, last + 1)
            ]
            at_edge = attend(graph.nodes_to_edge[k], edges[w], within)
            new_edges[w] = update(graph.edge_cell, [edges[w]], [at_edge, *at_whole])
        whole_sum = whole_sum + update(graph.global_cell, [whole], at_whole)
        node_sum = {t: node_sum[t] + new_nodes[t] for t in nodes}
        edge_sum = {w: edge_sum[w] + new_edges[w] for w in edges}
        nodes = {t: parts.norm(x) for t, x in node_sum.items()}
        edges = {w: parts.norm(x) for w, x in edge_sum.items()}
        whole = parts.norm(whole_sum)
    raise AssertionError


def slow_features(model: LatticeModel, text: str) -> Tensor:
    """float[T, 2 * width] of one sentence."""
    encoder = model.tagger.encoder
    batch, (lattice,) = model.encode([text])
    spans = lattice.words.tolist() if model.config.use_words else []
    words = [(start, end - 1) for start, end, _ in spans]
    vectors = list(encoder.word_projection(encoder.embeddings.words(batch))[0])[: len(words)]
    chars = encoder.embeddings.chars(batch)[0]
    ahead, back = (
        slow_direction(graph, encoder, chars, vectors, words, step)
        for graph, step in zip(encoder.directions, (1, -1), strict=True)
    )
    rows = []
    for t in range(len(text)):
        states = [torch.cat([a[t], b[t]]) for a, b in zip(ahead, back, strict=True)]
        shares = torch.stack([torch.sigmoid(encoder.step_weight(x)) for x in states]).softmax(0)
        rows.append(sum(a * x for a, x in zip(shares, states, strict=True)))
    return torch.stack(rows)


@pytest.mark.parametrize("variant", [{}, {"width": 10}, {"n_steps": 2, "max_length": 3}, {"use_words": False}], ids=str)
@torch.no_grad()
def test_equals_the_equations(variant):
    model = made(**variant)
    tiny.vary_layer_norms(model)
    model.lexicon.add("药店，重庆", "长江", "南京市长江大桥，重庆人")  # one twice, one longer than max_length
    for text in (TEXT, "李", "罕见", "李明重庆"):
        batch, _ = model.encode([text])
        expected = slow_features(model, text) if variant.get("max_length") != 3 else None
        if expected is None:  # the loops know the default; lengths above 3 share the last row of a table of 3
            lengths = model.tagger.encoder.parts.lengths
            lengths.weight.data = torch.cat([lengths.weight, lengths.weight[-1:], lengths.weight[-1:]])
            expected = slow_features(model, text)
            lengths.weight.data = lengths.weight[:3]
        torch.testing.assert_close(model.tagger.encoder(batch)[0], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("has_places", [False, True])
def test_one_query_alone_and_queries_along_edges_read_alike(has_places):
    """A query that has edges to all keys of a sentence reads what the only query of that sentence reads."""
    part = Aggregation(SMALL, key_width=8 + 4 * has_places).eval()
    query, keys, vectors = torch.randn(2, 8), torch.randn(2, 5, 8), torch.randn(3, 4)
    codes = torch.tensor([0, 1, 1, 2, 2, 0, 0, 0, 1])  # of all edges: the second query has no edge to the last key
    edges = Edges(torch.tensor([0] * 5 + [1] * 4), torch.arange(9), 2, 10)
    places = (codes, vectors) if has_places else None
    found, shares = part(query, keys.flatten(0, 1), edges, places=places)
    whole = [
        torch.cat([key, vectors[code]]) if has_places else key
        for key, code in zip(keys.view(10, 8), codes, strict=False)
    ]
    expected = torch.stack([attend(part, query[0], whole[:5]), attend(part, query[1], whole[5:])])
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(shares[:5].sum(0), torch.ones(2))
    if not has_places:
        allowed = torch.tensor([[True] * 5, [True] * 4 + [False]])
        torch.testing.assert_close(part.of_one(query, keys, allowed), expected, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_a_word_is_read_where_it_ends_and_where_it_begins():
    model = made()
    batch, (lattice,) = model.encode([TEXT])
    weights = model.tagger.encoder.read_words(batch)[1][0]
    for k, (start, end, _) in enumerate(lattice.words.tolist()):
        assert torch.nonzero(weights[:, k])[:, 0].tolist() == [start, end - 1]


@torch.no_grad()
def test_vectors_of_another_width_are_projected():
    assert isinstance(made(width=8).tagger.encoder.word_projection, torch.nn.Identity)
    assert made(width=10).tagger.encoder.word_projection.weight.shape == (10, 8)


def test_defaults_are_the_released_ones():
    config = LgnConfig()
    assert (config.width, config.n_steps, config.n_heads, config.head_width, config.max_length) == (50, 4, 10, 20, 5)
    assert (config.place_width, config.attention_dropout_prob, config.cell_dropout_prob) == (10, 0.1, 0.2)
    assert F.leaky_relu(torch.tensor(-1.0)) == pytest.approx(-0.01)
