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
vectors to the width of H (in the paper they have this width). Switches of the released code: `average_heads=False` (one
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
from cige.models.config import ModelConfig
from cige.models.encoder import LatticeEncoder
from cige.nn.char_features import CharFeatures
from cige.nn.dropout import Dropout
from cige.nn.embeddings import InputSizes
from cige.nn.lattice_graph import begin_end_graph, containing_graph, node_spans, transition_graph
from cige.nn.masked_attention import hide
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
        if self.lstm_width % 2:
            return [f"model.lstm_width is {self.lstm_width}, expected an even number (half for each direction)"]
        return []


class CgnEncoder(LatticeEncoder[CgnConfig]):
    """Encodes a lattice batch to character features."""

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

    def forward(self, batch: LatticeBatch) -> Tensor:
        """float[B, T, D]."""
        return self._encode(batch)[0]

    def read_words(self, batch: LatticeBatch) -> tuple[Tensor, Tensor]:
        """Character features, and attention to words float[B, T, W], averaged over graphs, layers and heads."""
        features, layers = self._encode(batch)
        n_chars = features.shape[1]
        if not self.config.use_words:
            return self.without_words(features, batch)
        attention = torch.stack([layer.mean(1) for layer in layers]).mean(0)  # [B, N, N]
        return features, attention[:, :n_chars, n_chars:] * batch.char_mask[:, :, None]

    def _encode(self, batch: LatticeBatch) -> tuple[Tensor, list[Tensor]]:
        """Character features, and each graph's and layer's attention float[B, H, N, N]."""
        chars = self.read_chars(batch)
        context = self.lstm_dropout(self.lstm(chars, batch.n_chars))  # [B, T, lstm_width]
        nodes = context
        if self.word_projection is not None:
            nodes = torch.cat([context, self.word_projection(self.embeddings.words(batch))], 1)  # [B, N, ..]
        spans = node_spans(batch, use_words=self.config.use_words)
        graphs = {
            "transition": transition_graph(spans),
            "containing": containing_graph(spans),
            "lattice": begin_end_graph(spans),
        }
        outputs, attention = [], []
        for name, graph in graphs.items():
            out, layers = self.graphs[name](nodes, graph)
            outputs.append(out[:, : context.shape[1]])
            attention += layers
        return self.fusion(context, outputs), attention


class GraphAttention(nn.Module):
    """§3.3: layers of graph attention; float[B, N, width] -> float[B, N, graph_width]."""

    def __init__(self, config: CgnConfig, width: int):
        super().__init__()
        inner = config.n_heads * config.head_width
        widths = [width] + [inner] * (config.n_layers - 1)
        self.layers = nn.ModuleList(GraphAttentionLayer(config, n, config.head_width) for n in widths[:-1])
        n_last = config.n_heads if config.average_heads else 1
        self.last = GraphAttentionLayer(config, widths[-1], config.graph_width, n_heads=n_last)
        self.dropout = Dropout(config.graph_dropout_prob)

    def forward(self, nodes: Tensor, graph: Tensor) -> tuple[Tensor, list[Tensor]]:
        """The output, and each layer's attention float[B, H, N, N]; `graph`, bool[B, N, N], masks the attention."""
        attention = []
        for layer in self.layers:
            heads, probabilities = layer(self.dropout(nodes), graph)
            nodes = F.elu(heads).transpose(1, 2).flatten(2)
            attention.append(probabilities)
        heads, probabilities = self.last(self.dropout(nodes), graph)
        return F.elu(heads.mean(1)), [*attention, probabilities]


class GraphAttentionLayer(nn.Module):
    """One layer of graph attention: float[B, N, in_width] -> float[B, H, N, head_width]."""

    def __init__(self, config: CgnConfig, in_width: int, head_width: int, n_heads: int | None = None):
        super().__init__()
        n_heads = n_heads or config.n_heads
        self.slope = config.leaky_slope
        self.weight = nn.Parameter(torch.empty(n_heads, in_width, head_width))
        self.query = nn.Parameter(torch.empty(n_heads, head_width, 1))
        self.key = nn.Parameter(torch.empty(n_heads, head_width, 1))
        self.dropout = Dropout(config.graph_dropout_prob)
        for parameter in (self.weight, self.query, self.key):
            for head in parameter:
                nn.init.xavier_uniform_(head.data, gain=1.414)

    def forward(self, nodes: Tensor, graph: Tensor) -> tuple[Tensor, Tensor]:
        """The output of each head, and its attention float[B, H, N, N] (without gradient)."""
        # All heads are one product; W a_query and W a_key do not depend on the nodes: [H, in_width, 1] each.
        heads = torch.cat([self.weight, self.weight @ self.query, self.weight @ self.key], 2)
        products = (nodes @ heads.transpose(0, 1).flatten(1)).unflatten(2, (len(heads), -1)).transpose(1, 2)
        values, of_query, of_key = products.contiguous().split([products.shape[3] - 2, 1, 1], 3)  # [B, H, N, d or 1]
        scores = F.leaky_relu(of_query + of_key.transpose(2, 3), self.slope)  # [B, H, N, N]
        probabilities = torch.softmax(hide(scores, graph[:, None]), -1)
        return self.dropout(probabilities) @ values, probabilities.detach()


class Fusion(nn.Module):
    """§3.4: fuses the outputs of the BiLSTM and the graphs to float[B, T, graph_width]."""

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
        if self.kind == "matrix":
            return self.matrix(torch.cat([context, *graphs], -1))
        return (torch.stack([self.matrix(context), *graphs], -2) * self.weights).sum(-2)
