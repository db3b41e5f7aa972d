"""CGN: against the paper's equations written as loops over nodes, and its switches."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import tiny
import torch
from torch import Tensor

from cige.models.cgn import CgnConfig, GraphAttentionLayer
from cige.models.model import LatticeModel

TEXT = "南京市长江大桥，重庆人和药店"
SMALL = CgnConfig(
    lstm_width=24, head_width=6, graph_width=16, embed_dropout_prob=0.0, word_dropout_prob=0.0, lstm_dropout_prob=0.0,
    graph_dropout_prob=0.0,
)  # fmt: skip
VARIANTS: list[dict] = [
    {},
    {"average_heads": False},
    {"n_layers": 1},
    {"n_layers": 3},
    {"fusion": "vector"},
    {"fusion": "scalar"},
    {"use_words": False},
]


def made(**settings) -> LatticeModel:
    return tiny.model(config=replace(SMALL, **settings), architecture="cgn")


def neighbours(name: str, n: int, words: list[list[int]], i: int) -> list[int]:
    """§3.2: the nodes that node i reads, characters 0 .. n-1 and then words."""

    def span(k: int) -> tuple[int, int]:
        return (k, k + 1) if k < n else (words[k - n][0], words[k - n][1])

    def meets(a: int, b: int) -> bool:
        (start, end), (other_start, _) = span(a), span(b)
        if a < n and b < n:
            return name != "containing" and abs(a - b) == 1
        if a >= n and b >= n:
            return name == "transition" and end == other_start
        if a < n:
            return False  # told from the word's side
        if name == "containing":
            return start <= other_start < end
        if name == "transition":
            return b in (start - 1, end)
        return b in (start, end - 1)

    return [j for j in range(n + len(words)) if j == i or meets(i, j) or meets(j, i)]


def elu(x: float) -> float:
    return x if x > 0 else math.exp(x) - 1


def one_head(layer: GraphAttentionLayer, head: int, h: list[Tensor], reads: list[list[int]]) -> list[Tensor]:
    """§3.3 for one head: sum over neighbours of alpha_ij W h_j."""
    out = []
    for i in range(len(h)):
        values = {j: h[j] @ layer.weight[head] for j in {i, *reads[i]}}
        scores = {}
        for j in reads[i]:
            score = float(values[i] @ layer.query[head, :, 0] + values[j] @ layer.key[head, :, 0])
            scores[j] = math.exp(score if score > 0 else 0.1 * score)
        total = sum(scores.values())
        out.append(sum(scores[j] / total * values[j] for j in reads[i]))
    return out


def slow_features(model: LatticeModel, text: str) -> Tensor:
    """float[T, D] of one sentence."""
    encoder, config = model.tagger.encoder, model.config
    batch, (lattice,) = model.encode([text])
    n, words = len(text), lattice.words[:, :2].tolist() if config.use_words else []
    context = encoder.lstm(encoder.embeddings.chars(batch), batch.n_chars)[0]
    nodes = list(context)
    if words:
        vectors = encoder.embeddings.words(batch)[0]
        nodes += [encoder.word_projection.weight @ v + encoder.word_projection.bias for v in vectors]
    parts = []
    for name, graph in encoder.graphs.items():
        reads = [neighbours(name, n, words, i) for i in range(len(nodes))]
        h = nodes
        for layer in graph.layers:
            heads = [one_head(layer, k, h, reads) for k in range(len(layer.weight))]
            h = [torch.cat([head[i].apply_(elu) for head in heads]) for i in range(len(h))]
        heads = [one_head(graph.last, k, h, reads) for k in range(len(graph.last.weight))]
        parts.append([(sum(head[i] for head in heads) / len(heads)).apply_(elu) for i in range(n)])
    fused = []
    for t in range(n):
        fusion, seen = encoder.fusion, [context[t], *(part[t] for part in parts)]
        if config.fusion == "matrix":
            fused.append(fusion.matrix.weight @ torch.cat(seen) + fusion.matrix.bias)
        else:
            seen[0] = fusion.matrix.weight @ seen[0] + fusion.matrix.bias
            fused.append(sum(w * x for w, x in zip(fusion.weights, seen, strict=True)))
    return torch.stack(fused)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@torch.no_grad()
def test_equals_the_equations(variant):
    model = made(**variant)
    model.lexicon.add("药店，重庆", "长江", "庆人")  # one twice, as base word and as the user's
    if "fusion" in variant:
        model.tagger.encoder.fusion.weights.copy_(torch.randn_like(model.tagger.encoder.fusion.weights))
    for text in (TEXT, "李", "罕见"):
        batch, _ = model.encode([text])
        torch.testing.assert_close(model.tagger.encoder(batch)[0], slow_features(model, text), atol=1e-5, rtol=1e-5)


def test_every_row_of_attention_sums_to_one():
    model = made()
    batch, _ = model.encode([TEXT, "李明", ""])
    with torch.no_grad():
        _, attention, nodes = model.tagger.encoder.encode(batch)
    assert len(attention) == 3 * model.config.n_layers
    for k, (edges, shares) in enumerate(attention):
        is_read = torch.ones(edges.n_queries, dtype=torch.bool)
        if k % model.config.n_layers == model.config.n_layers - 1:  # of the last layer, only characters are read
            is_read = torch.zeros_like(is_read).index_fill(0, nodes.chars, True)
        sums = torch.zeros(edges.n_queries, shares.shape[1]).index_add(0, edges.query, shares)
        torch.testing.assert_close(sums, is_read.float()[:, None].expand_as(sums))


def test_a_character_reads_only_words_that_it_meets():
    model = made(n_layers=1)
    batch, (lattice,) = model.encode([TEXT])
    with torch.no_grad():
        weights = model.tagger.encoder.read_words(batch)[1][0]
    for k, (start, end, _) in enumerate(lattice.words.tolist()):
        met = set(range(start, end)) | ({start - 1, end} & set(range(len(TEXT))))
        assert set(torch.nonzero(weights[:, k])[:, 0].tolist()) == met


def test_defaults_are_the_papers():
    config = CgnConfig()
    assert (config.n_heads, config.head_width, config.n_layers, config.lstm_width) == (3, 30, 2, 300)
    assert config.fusion == "matrix" and config.average_heads and not config.use_bigrams
