"""CGN: three graphs over characters and words, each read by graph attention, fused with a BiLSTM over characters.

Sui, Chen, Liu, Zhao, Liu: "Leverage Lexical Knowledge for Chinese Named Entity Recognition via Collaborative Graph
Network", EMNLP 2019.

    长江大桥 - 长, 江, 大, 桥                          containing: a word and each of its characters
    南京市 - 长江大桥, 市 - 长江大桥, 市长 - 江, 长 - 江    transition: what follows one another, words too
    长江大桥 - 长, 长江大桥 - 桥, 长 - 江, 江 - 大          lattice: a word and its two ends, the chain of characters

§3.1  encoding            H = BiLSTM(characters); nodes are H, then the word vectors
§3.2  the three graphs    nn/lattice_graph.py; symmetric, each node its own neighbour too
§3.3  GraphAttention      e_ij = LeakyReLU(a [W h_i; W h_j]), softmax over a node's neighbours and itself, ELU;
                          heads are concatenated, or averaged in the last layer; only characters' rows are used
§3.4  fusion              R = W1 H + W2 G_transition + W3 G_containing + W4 G_lattice

Here, as in every model of this package, R has its own width and is the input of a linear layer and the CRF; in the
released code each graph has one output per tag, and log-probabilities of tags are fused. A linear layer converts word
vectors to the width of H (in the paper they have this width). Attention runs along the edges alone (nn/edges.py), over
nodes without padding. Switches of the released code: `average_heads=False` (one
head in the last layer), `n_layers`, and `fusion` (its n, v and m). Attention matrices are initialised as in that code
(Xavier, gain 1.414), the BiLSTM as in PyTorch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cige.data.batch import LatticeBatch
from cige.models.config import ModelConfig, odd_widths
from cige.models.encoder import LatticeEncoder
from cige.nn.char_features import CharFeatures
from cige.nn.dropout import Dropout
from cige.nn.edges import Edges, from_keys, from_queries, softmax_by_query, sum_over_heads, weighted_sums
from cige.nn.embeddings import InputSizes
from cige.nn.lattice_graph import (
    NearGraph,
    begin_end_graph,
    containing_graph,
    near_graph,
    node_spans,
    transition_graph,
)
from cige.nn.modules_of import ModulesOf
from cige.nn.ragged import RealRows
from cige.nn.recurrent import BiRecurrent


@dataclass(frozen=True, kw_only=True)
class CgnConfig(ModelConfig):
    """CGN's settings; widths and probabilities are those of the released code."""

    use_bigrams: bool = False
    """Whether to read character bigrams in addition to characters; the paper reads only characters."""
    use_words: bool = True
    """False keeps only the edges between characters: the same model without words."""
    lstm_width: int = 300
    """Width of the BiLSTM over both directions, which is also the width of the nodes."""
    n_heads: int = 3
    """Attention heads (the script for Weibo has 5)."""
    head_width: int = 30
    """Width of a head in all layers except the last."""
    n_layers: int = 2
    """Layers of graph attention."""
    graph_width: int = 90
    """Width of each graph's output, and of their fusion."""
    average_heads: bool = True
    """Whether the last layer averages n_heads heads (paper) or, if False, has one head (released code)."""
    fusion: Literal["matrix", "vector", "scalar"] = "matrix"
    """Weights of the BiLSTM and the graphs: one matrix each (paper; m in the code), a vector (v) or a number (n)."""
    leaky_slope: float = 0.1
    """Slope of the LeakyReLU below zero."""
    lstm_dropout_prob: float = 0.5
    """Dropout on the output of the BiLSTM."""
    graph_dropout_prob: float = 0.5
    """Dropout on the inputs of each layer of graph attention, and on its probabilities."""
    output_dropout_prob: float = 0.0
    """Dropout before the tag scores; the released code has none."""

    def problems(self) -> list[str]:
        return odd_widths(lstm_width=self.lstm_width)


class CgnEncoder(LatticeEncoder[CgnConfig]):
    def __init__(self, *, config: CgnConfig, sizes: InputSizes, features: CharFeatures | None = None):
        super().__init__(config, sizes, features)
        width = config.lstm_width
        self.lstm = BiRecurrent(in_width=self.char_width, out_width=width)
        self.lstm_dropout = Dropout(config.lstm_dropout_prob)
        self.word_projection = nn.Linear(self.embeddings.word_width, width) if config.use_words else None
        self.graphs = nn.ModuleDict(
            {name: GraphAttention(config, width) for name in ("transition", "containing", "lattice")}
        )
        self.fusion = Fusion(config)
        self.out_width = config.graph_width
        if self.word_projection is not None:
            nn.init.xavier_uniform_(self.word_projection.weight)

    def read_words(self, batch: LatticeBatch) -> tuple[Tensor, Tensor]:
        """Character features, and attention to words float[B, T, W], averaged over graphs, layers and heads."""
        features, layers, graph = self.encode(batch)
        if not self.config.use_words:
            return self.without_words(features, batch)
        n_padded, n_chars = graph.rows.numbers.numel(), features.shape[1]
        n_nodes = n_chars + batch.words.shape[1]  # of a sentence, N
        attention = features.new_zeros(n_padded * n_nodes)
        for edges, probabilities in layers:
            pairs = graph.rows.places[edges.query] * n_nodes + graph.rows.places[edges.key] % n_nodes
            attention.index_add_(0, pairs, probabilities.mean(1).to(attention.dtype) / len(layers))
        return features, attention.view(len(features), n_nodes, n_nodes)[:, :n_chars, n_chars:]

    def encode(self, batch: LatticeBatch) -> tuple[Tensor, list[tuple[Edges, Tensor]], NearGraph]:
        """Character features, each graph's and layer's edges with their attention float[E, H], and the nodes."""
        chars = self.read_chars(batch)
        context = self.lstm_dropout(self.lstm(chars, batch.n_chars))  # [B, T, lstm_width]
        padded = context
        if self.word_projection is not None:
            padded = torch.cat([context, self.word_projection(self.embeddings.words(batch))], 1)  # [B, T + W, ..]
        near = near_graph(node_spans(batch, use_words=self.config.use_words))
        nodes = near.rows.pack(padded)  # [N, lstm_width]
        graphs = {
            "transition": transition_graph(near.pairs),
            "containing": containing_graph(near.pairs),
            "lattice": begin_end_graph(near.pairs),
        }
        outputs, attention = [], []
        for name, graph in graphs.items():
            to_chars = near.edges.where(graph & ~near.pairs.i.is_word)
            out, layers = self.graphs[name](nodes, near.edges.where(graph), to_chars, near.chars)
            outputs.append(out)
            attention += layers
        chars_only = RealRows.of(batch.char_mask)
        return chars_only.pad(self.fusion(chars_only.pack(context), outputs)), attention, near


class GraphAttention(nn.Module):
    """§3.3: layers of graph attention; float[N, width] of nodes -> float[M, graph_width] of the M characters."""

    def __init__(self, config: CgnConfig, width: int):
        super().__init__()
        inner = config.n_heads * config.head_width
        widths = [width] + [inner] * (config.n_layers - 1)
        layers = (GraphAttentionLayer(config, n, config.head_width) for n in widths[:-1])
        self.layers = ModulesOf[GraphAttentionLayer](layers)
        n_last = config.n_heads if config.average_heads else 1
        self.last = GraphAttentionLayer(config, widths[-1], config.graph_width, n_heads=n_last)
        self.dropout = Dropout(config.graph_dropout_prob)

    def forward(
        self, nodes: Tensor, edges: Edges, to_chars: Edges, chars: Tensor
    ) -> tuple[Tensor, list[tuple[Edges, Tensor]]]:
        """The output, and each layer's edges with their attention float[E, H].

        Args:
            edges: all edges of the graph; to_chars: those whose queries are characters, which the last layer reads.
            chars: int64[M], the characters among the nodes.
        """
        attention = []
        for layer in self.layers:
            weights, values = layer(self.dropout(nodes), edges)
            heads = weighted_sums(layer.dropout(weights), values, edges, layer.n_heads).unflatten(
                1, (layer.n_heads, -1)
            )
            nodes = F.elu(heads[:, :, :-2]).flatten(1)
            attention.append((edges, weights.detach()))
        weights, values = self.last(self.dropout(nodes), to_chars)
        shares = self.last.dropout(weights) / self.last.n_heads
        mean = sum_over_heads(shares, values, to_chars.of_queries(chars), self.last.n_heads)
        return F.elu(mean[:, :-2]), [*attention, (to_chars, weights.detach())]


class GraphAttentionLayer(nn.Module):
    """The attention of one layer float[E, H], and its values float[N, H * (head_width + 2)], from float[N, in_width].

    The last two numbers of each head are not values, but a_query W h and a_key W h.
    """

    def __init__(self, config: CgnConfig, in_width: int, head_width: int, n_heads: int | None = None):
        super().__init__()
        self.n_heads = n_heads or config.n_heads
        self.slope = config.leaky_slope
        self.weight = nn.Parameter(torch.empty(self.n_heads, in_width, head_width))
        self.query = nn.Parameter(torch.empty(self.n_heads, head_width, 1))
        self.key = nn.Parameter(torch.empty(self.n_heads, head_width, 1))
        self.dropout = Dropout(config.graph_dropout_prob)
        for parameter in (self.weight, self.query, self.key):
            for head in parameter:
                nn.init.xavier_uniform_(head.data, gain=1.414)

    def forward(self, nodes: Tensor, edges: Edges) -> tuple[Tensor, Tensor]:
        # All heads are one product; W a_query and W a_key do not depend on the nodes: [H, in_width, 1] each. Values are
        # not copied without their last two numbers, which takes longer than to sum these with them.
        heads = torch.cat([self.weight, self.weight @ self.query, self.weight @ self.key], 2)
        values = nodes @ heads.transpose(0, 1).flatten(1)
        of_query, of_key = values.unflatten(1, (self.n_heads, -1))[:, :, -2:].unbind(2)  # [N, H]
        scores = F.leaky_relu(from_queries(of_query, edges) + from_keys(of_key, edges), self.slope)  # [E, H]
        return softmax_by_query(scores, edges), values


class Fusion(nn.Module):
    """§3.4: fuses the outputs of the BiLSTM and the graphs."""

    def __init__(self, config: CgnConfig):
        super().__init__()
        n_graphs, width, lstm_width = 3, config.graph_width, config.lstm_width
        self.kind = config.fusion
        if self.kind == "matrix":
            self.matrix = nn.Linear(lstm_width + n_graphs * width, width)
        else:
            self.matrix = nn.Linear(lstm_width, width)
            self.weights = nn.Parameter(torch.ones(1 + n_graphs, width if self.kind == "vector" else 1))
        nn.init.xavier_uniform_(self.matrix.weight)

    def forward(self, context: Tensor, graphs: list[Tensor]) -> Tensor:
        """float[M, lstm_width], float[M, graph_width] of each graph -> float[M, graph_width]."""
        if self.kind == "matrix":
            return self.matrix(torch.cat([context, *graphs], -1))
        fused = self.matrix(context) * self.weights[0]
        for weight, of_graph in zip(self.weights[1:], graphs, strict=True):
            fused = fused + weight * of_graph
        return fused
