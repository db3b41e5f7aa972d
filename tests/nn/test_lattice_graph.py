"""The lattice as a graph: edges of a batch against sets of pairs made one sentence at a time."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cige.data.batch import LatticeBatch
from cige.lattice.lattice import Lattice
from cige.nn.lattice_graph import (
    NearGraph,
    begin_end_graph,
    containing_graph,
    every_pair,
    mention_edges,
    near_graph,
    node_spans,
    span_relations,
    transition_graph,
)

GRAPHS = {"containing": containing_graph, "transition": transition_graph, "begin_end": begin_end_graph}
MODEL = tiny.model()


def batch_of(sizes_and_spans: list[tuple[int, list[tuple[int, int]]]]) -> LatticeBatch:
    """A batch of sentences of so many characters with words over the given spans."""
    return MODEL.batch(
        [Lattice("京" * n, np.array([(s, e, 0) for s, e in spans], np.int32).reshape(-1, 3), 99)
         for n, spans in sizes_and_spans]
    )  # fmt: skip


def edges_of(name: str, n: int, spans: list[tuple[int, int]]) -> set[tuple]:
    """The pairs of the paper's §3.2, nodes named ("c", position) and ("w", place in the list); self-loops left out."""
    found = set()
    if name != "containing":
        found |= {(("c", t), ("c", t + 1)) for t in range(n - 1)}
    for k, (start, end) in enumerate(spans):
        word = ("w", k)
        if name == "containing":
            found |= {(word, ("c", t)) for t in range(start, end)}
        elif name == "begin_end":
            found |= {(word, ("c", start)), (word, ("c", end - 1))}
        else:
            if start > 0:
                found.add((word, ("c", start - 1)))
            if end < n:
                found.add((word, ("c", end)))
            found |= {(word, ("w", other)) for other, (begin, _) in enumerate(spans) if begin == end}
    return found | {(b, a) for a, b in found}


@st.composite
def sentences(draw) -> list[tuple[int, list[tuple[int, int]]]]:
    made = []
    for _ in range(draw(st.integers(1, 3))):
        n = draw(st.integers(0, 7))
        every = [(s, e) for s in range(n) for e in range(s + 2, n + 1)]
        made.append((n, draw(st.lists(st.sampled_from(every), max_size=6)) if every else []))
    return made


def dense(near: NearGraph, holds: torch.Tensor) -> torch.Tensor:
    """bool[B, N, N]: the edges for which bool[E] holds."""
    graph = torch.zeros(*near.rows.mask.shape, near.rows.mask.shape[1], dtype=torch.bool)
    places = near.rows.mask.nonzero()  # sentence and node of each real node
    for i, j in zip(near.edges.query[holds].tolist(), near.edges.key[holds].tolist(), strict=True):
        assert places[i, 0] == places[j, 0]
        graph[places[i, 0], places[i, 1], places[j, 1]] = True
    return graph


@pytest.mark.parametrize("name", GRAPHS)
@given(made=sentences())
@settings(max_examples=60, deadline=None)
def test_edges_are_those_of_each_sentence(name, made):
    batch = batch_of(made)
    nodes = node_spans(batch)
    near = near_graph(nodes)
    holds = GRAPHS[name](near.pairs)
    graph = dense(near, holds)
    assert torch.equal(graph, GRAPHS[name](every_pair(nodes)) & nodes.pairs)  # no edge is between nodes that are far
    n_padded = batch.chars.shape[1]
    assert (graph == graph.transpose(1, 2)).all()
    assert torch.equal(graph.diagonal(dim1=1, dim2=2), nodes.mask)

    def place(node: tuple[str, int]) -> int:
        return node[1] + (n_padded if node[0] == "w" else 0)

    for row, (n, spans) in enumerate(made):
        expected = torch.diag(nodes.mask[row])
        for a, b in edges_of(name, n, spans):
            expected[place(a), place(b)] = True
        assert torch.equal(graph[row], expected)


def test_without_words_nodes_are_characters():
    batch = batch_of([(4, [(0, 2), (1, 4)]), (2, [])])
    nodes = node_spans(batch, use_words=False)
    pairs = every_pair(nodes)
    assert nodes.mask.tolist() == [[True] * 4, [True, True, False, False]] and not pairs.i.is_word.any()
    chain = [
        [True, True, False, False],
        [True, True, True, False],
        [False, True, True, True],
        [False, False, True, True],
    ]
    assert transition_graph(pairs)[0].tolist() == chain == begin_end_graph(pairs)[0].tolist()
    assert torch.equal(containing_graph(pairs)[0], torch.eye(4, dtype=torch.bool))
    near = near_graph(nodes)
    assert near.chars.tolist() == [0, 1, 2, 3, 4, 5] == list(range(near.edges.n_queries))


@given(made=sentences())
@settings(max_examples=60, deadline=None)
def test_each_pair_of_nodes_has_one_relation(made):
    batch = batch_of(made)
    codes = span_relations(every_pair(node_spans(batch)))
    n_padded = batch.chars.shape[1]
    for row, (n, words) in enumerate(made):
        nodes = [(t, (t, t + 1)) for t in range(n)] + [(n_padded + k, span) for k, span in enumerate(words)]
        for i, (start, end) in nodes:
            mine = set(range(start, end))
            for j, (other_start, other_end) in nodes:
                other = set(range(other_start, other_end))
                expected = {
                    "same": mine == other,
                    "left": other_end == start,
                    "right": other_start == end,
                    "contains": other < mine,
                    "inside": mine < other,
                    "crosses": bool(mine & other) and not (mine <= other or other <= mine),
                    "before": other_end < start,
                    "after": other_start > end,
                }
                assert sum(expected.values()) == 1
                assert list(expected.values())[int(codes[row, i, j])]


@given(made=sentences(), seed=st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_mentions_are_paths_of_their_gazetteers(made, seed):
    batch = batch_of(made)
    member = torch.rand(*batch.words.shape, 3, generator=torch.Generator().manual_seed(seed)) < 0.5
    edges = mention_edges(batch, member)
    for row, (_, words) in enumerate(made):
        for g in range(3):
            mentions = [span for k, span in enumerate(words) if member[row, k, g]]
            for t in range(batch.chars.shape[1]):
                assert bool(edges.first[row, g, t]) == any(s == t for s, _ in mentions)
                assert bool(edges.last[row, g, t]) == any(e - 1 == t for _, e in mentions)
                assert bool(edges.inner[row, g, t]) == any(s <= t and t + 1 < e for s, e in mentions)
