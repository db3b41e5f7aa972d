"""PLT, the porous lattice Transformer: nodes attend to lattice neighbours and to a pivot, which attends to all nodes.

Xue, Yu, Liu, Zhang, Meng, Wang: "Porous Lattice Transformer Encoder for Chinese NER", COLING 2020 (PLTE).

    南  京  市  长  江  大  桥      市 attends to 京 (left), 长, 长江 (right), 南京市 (contains it), itself
    [ 南京市 ]  [ 长江大桥  ]       and the pivot; information of 南 reaches it through 南京市 or the pivot
            [市长]                  spans that overlap partially, such as 市长 and 南京市, cross

input      characters and words as one sequence: a projected vector and a sinusoid of the first character's place
LatticeAttention   score_ij = q_i . (k_j + K[r_ij]) / sqrt(d), out_i = sum of p_ij (v_j + V[r_ij]) (Shaw et al. 2018)
PorousLayer        the pivot attends to all nodes; nodes attend to neighbours and the pivot; a feed-forward network
BiRecurrent        a GRU over the characters' states, then a linear layer and the CRF

No code was released, and only the paper's abstract and summaries of it were available. They provide the parts above,
their order, vectors of the relations between spans, and a pivot instead of full attention. The following choices are
ours:

- the relations (nn/lattice_graph.py): same span, adjacent on the left and on the right, contains, lies inside, crosses;
  these six are the relations of lattice neighbours, and the pivot is the seventh. With `porous=False`, every node
  attends to every other, "before" and "after" are the seventh and eighth, and there is no pivot;
- vectors of relations in values as well (`relation_values`), shared by the heads, as in the lattice Transformers for
  translation on which the paper is based (Xiao et al. 2019);
- the pivot is initialised with the mean of the nodes and attends before they do, so that one layer is enough for
  information to pass between any two nodes; it has its own attention, residual connection and normalisation, like the
  relay of the Star-Transformer;
- widths, heads, layers and dropout. Matrices are initialised by Xavier's method, the GRU as in PyTorch.

Neighbours are few: attention to them runs along edges (nn/edges.py), over nodes without padding. `porous=False` scores
all pairs of padded nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cige.data.batch import LatticeBatch
from cige.models.config import ModelConfig
from cige.models.encoder import LatticeEncoder
from cige.nn.char_features import CharFeatures
from cige.nn.dropout import Dropout
from cige.nn.edges import Edges, edge_attention
from cige.nn.embeddings import InputSizes
from cige.nn.lattice_graph import N_NEAR, NodeSpans, every_pair, near_graph, node_spans, span_relations
from cige.nn.masked_attention import Relations, attention_of_one, by_head, masked_attention
from cige.nn.ragged import RealRows, masked_mean
from cige.nn.recurrent import BiRecurrent
from cige.nn.sinusoid import sinusoid

PIVOT = N_NEAR  # the relation of the pivot to every node


@dataclass(frozen=True, kw_only=True)
class PltConfig(ModelConfig):
    """PLT's settings; the paper's widths and probabilities are not known to us."""

    use_bigrams: bool = False
    """Whether to read character bigrams in addition to characters."""
    use_words: bool = True
    """False reads only characters: the same model without words."""
    n_heads: int = 8
    """Attention heads."""
    head_width: int = 16
    """Width of a head; the width D of nodes is n_heads * head_width."""
    ff_width: int = 256
    """Inner width of the feed-forward network."""
    n_layers: int = 2
    """Layers of the Transformer."""
    gru_width: int = 200
    """Width of the GRU's output, half of it per direction."""
    porous: bool = True
    """Attend to neighbours and the pivot; False lets every node attend to every other, without a pivot."""
    relation_values: bool = True
    """Whether to add a vector of the relation to values as well as to keys."""
    attention_dropout_prob: float = 0.1
    """Dropout on attention probabilities."""
    ff_dropout_prob: float = 0.15
    """Dropout inside and after the feed-forward network."""

    @property
    def width(self) -> int:
        return self.n_heads * self.head_width

    def problems(self) -> list[str]:
        return [
            f"model.{name} is {value}, expected an even number"
            for name, value in (("gru_width", self.gru_width), ("n_heads * head_width", self.width))
            if value % 2
        ]


class PltEncoder(LatticeEncoder[PltConfig]):
    def __init__(self, *, config: PltConfig, sizes: InputSizes, features: CharFeatures | None = None):
        super().__init__(config, sizes, features)
        self.char_projection = nn.Linear(self.char_width, config.width)
        self.word_projection = nn.Linear(self.embeddings.word_width, config.width) if config.use_words else None
        self.layers = nn.ModuleList(PorousLayer(config) for _ in range(config.n_layers))
        self.gru = BiRecurrent(in_width=config.width, out_width=config.gru_width, cell="gru")
        self.out_width = config.gru_width
        for projection in (self.char_projection, self.word_projection):
            if projection is not None:
                nn.init.xavier_uniform_(projection.weight)

    def read_words(self, batch: LatticeBatch) -> tuple[Tensor, Tensor]:
        """Character features, and attention to words float[B, T, W], averaged over layers and heads."""
        features, layers, pairs = self.encode(batch)
        if not self.config.use_words:
            return self.without_words(features, batch)
        n_chars = features.shape[1]
        attention = pairs.by_pair(torch.stack(layers).mean((0, -1)))  # [B, N, N]
        return features, attention[:, :n_chars, n_chars:].to(features.dtype) * batch.char_mask[:, :, None]

    def encode(self, batch: LatticeBatch) -> tuple[Tensor, list[Tensor], Neighbours | AllNodes]:
        """Character features, each layer's attention float[E, H], and the neighbours that it is for."""
        x = self.char_projection(self.read_chars(batch))
        n_chars = x.shape[1]
        if self.word_projection is not None:
            x = torch.cat([x, self.word_projection(self.embeddings.words(batch))], 1)  # [B, N, D]
        nodes = node_spans(batch, use_words=self.config.use_words)
        place = torch.arange(n_chars + 1, device=x.device)
        x = x + F.embedding(nodes.starts, sinusoid(place, self.config.width, "interleaved")).to(x)
        pairs = neighbours(nodes) if self.config.porous else all_nodes(nodes)
        pivot = masked_mean(x, nodes.mask)  # [B, D]
        x = pairs.rows.pack(x)  # [M, D]
        attention = []
        for layer in self.layers:
            x, pivot, probabilities = layer(x, pivot, pairs)
            attention.append(probabilities)
        return self.gru(pairs.rows.pad(x)[:, :n_chars], batch.n_chars), attention, pairs


@dataclass(frozen=True)
class Neighbours:
    """Each node with its neighbours and, last, the pivot of its sentence; the pivots follow the nodes as keys.

    Attributes:
        rows: the M real nodes among the padded ones [B, N].
        edges: from M nodes to M + B keys.
        codes: int64[E], the relation of each edge.
        places: int64[E], the place of a pair in [B, N, N], and B * N * N for edges to the pivot.
    """

    rows: RealRows
    edges: Edges
    codes: Tensor
    places: Tensor

    def read(
        self, query: Tensor, key: Tensor, value: Tensor, n_heads: int, relations: Relations, dropout: Dropout
    ) -> tuple[Tensor, Tensor]:
        """float[M, D] from float[M, D] each, and the attention float[E, H] of E pairs (without gradient)."""
        return edge_attention(query, key, value, self.edges, n_heads, relations=relations, dropout=dropout)

    def by_pair(self, shares: Tensor) -> Tensor:
        """float[B, N, N] of float[E], the shares of all pairs."""
        n_sentences, n_nodes = self.rows.numbers.shape
        n_pairs = n_sentences * n_nodes**2
        placed = shares.new_zeros(n_pairs + 1).index_add_(0, self.places, shares)
        return placed[:n_pairs].view(n_sentences, n_nodes, n_nodes)


@dataclass(frozen=True)
class AllNodes:
    """Every node with every node of its sentence: relations int64[B, N, N], and bool[B, N, N] for real pairs.

    Its methods are those of Neighbours.
    """

    rows: RealRows
    codes: Tensor
    allowed: Tensor

    def read(
        self, query: Tensor, key: Tensor, value: Tensor, n_heads: int, relations: Relations, dropout: Dropout
    ) -> tuple[Tensor, Tensor]:
        queries, keys, values = (by_head(self.rows.pad(x), n_heads) for x in (query, key, value))
        read, probabilities = masked_attention(
            queries, keys, values, self.allowed, relations=relations, dropout=dropout
        )
        return self.rows.pack(read), probabilities.transpose(0, 1).flatten(1).t()

    def by_pair(self, shares: Tensor) -> Tensor:
        return shares.view(self.codes.shape)


def neighbours(nodes: NodeSpans) -> Neighbours:
    near = near_graph(nodes)
    rows, n_real, (n_sentences, n_nodes) = near.rows, near.edges.n_queries, nodes.mask.shape
    edges, places = near.edges.with_one_more(n_real + rows.sentence, n_real + n_sentences)
    codes = torch.full_like(edges.query, PIVOT)
    codes[places] = span_relations(near.pairs)
    pairs = torch.full_like(edges.query, n_sentences * n_nodes**2)
    pairs[places] = rows.places[near.edges.query] * n_nodes + rows.places[near.edges.key] % max(1, n_nodes)
    return Neighbours(rows, edges, codes, pairs)


def all_nodes(nodes: NodeSpans) -> AllNodes:
    return AllNodes(RealRows.of(nodes.mask), span_relations(every_pair(nodes)), nodes.pairs)


class PorousLayer(nn.Module):
    """Attention of the pivot and of the nodes, and a feed-forward network, each with residual and normalisation."""

    def __init__(self, config: PltConfig):
        super().__init__()
        n_relations = N_NEAR + 1 if config.porous else N_NEAR + 2
        self.pivot_attention = LatticeAttention(config, n_relations=0) if config.porous else None
        self.pivot_norm = nn.LayerNorm(config.width) if config.porous else None
        self.attention = LatticeAttention(config, n_relations=n_relations)
        self.attention_norm = nn.LayerNorm(config.width)
        self.ff_in = nn.Linear(config.width, config.ff_width)
        self.ff_out = nn.Linear(config.ff_width, config.width)
        self.ff_norm = nn.LayerNorm(config.width)
        self.dropout = Dropout(config.ff_dropout_prob)
        for linear in (self.ff_in, self.ff_out):
            nn.init.xavier_uniform_(linear.weight)

    def forward(self, x: Tensor, pivot: Tensor, pairs: Neighbours | AllNodes) -> tuple[Tensor, Tensor, Tensor]:
        """Nodes float[M, D], pivots float[B, D], and the nodes' attention float[E, H]."""
        keys = x
        if self.pivot_attention is not None and self.pivot_norm is not None:
            pivot = self.pivot_norm(pivot + self.pivot_attention.of_pivot(pivot, x, pairs.rows))
            keys = torch.cat([x, pivot])
        read, probabilities = self.attention(x, keys, pairs)
        x = self.attention_norm(x + read)
        changed = self.dropout(self.ff_out(self.dropout(F.relu(self.ff_in(x)))))
        return self.ff_norm(x + changed), pivot, probabilities


class LatticeAttention(nn.Module):
    """Multi-head attention; that of nodes has vectors of the relation between query and key."""

    def __init__(self, config: PltConfig, *, n_relations: int):
        super().__init__()
        self.n_heads, self.scale = config.n_heads, config.head_width**-0.5
        self.query, self.key, self.value, self.output = (
            nn.Linear(config.width, config.width, bias=False) for _ in range(4)
        )
        shape = (n_relations, config.head_width)
        self.key_relations = nn.Parameter(torch.empty(shape)) if n_relations else None
        self.value_relations = nn.Parameter(torch.empty(shape)) if n_relations and config.relation_values else None
        self.dropout = Dropout(config.attention_dropout_prob)
        for linear in (self.query, self.key, self.value, self.output):
            nn.init.xavier_uniform_(linear.weight)
        for vectors in (self.key_relations, self.value_relations):
            if vectors is not None:
                nn.init.xavier_uniform_(vectors)

    def forward(self, x: Tensor, keys: Tensor, pairs: Neighbours | AllNodes) -> tuple[Tensor, Tensor]:
        """float[M, D] of the nodes, and their attention float[E, H]."""
        assert self.key_relations is not None
        read, probabilities = pairs.read(
            self.query(x) * self.scale,
            self.key(keys),
            self.value(keys),
            self.n_heads,
            Relations(pairs.codes, self.key_relations, self.value_relations),
            self.dropout,
        )
        return self.output(read), probabilities

    def of_pivot(self, pivot: Tensor, x: Tensor, rows: RealRows) -> Tensor:
        """float[B, D]: what each pivot reads from the nodes of its sentence and from itself."""
        keys = torch.cat([rows.pad(x), pivot[:, None]], 1)  # [B, N + 1, D]
        is_real = F.pad(rows.mask, (0, 1), value=True)[:, None]
        query = by_head(self.query(pivot[:, None]) * self.scale, self.n_heads)
        read, _ = attention_of_one(query, keys, is_real, key=self.key, value=self.value, dropout=self.dropout)
        return self.output(read)[:, 0]
