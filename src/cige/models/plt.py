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
from cige.nn.embeddings import InputSizes
from cige.nn.lattice_graph import N_NEAR, NodeSpans, node_spans, span_relations
from cige.nn.masked_attention import Relations, by_head, masked_attention
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
    """Encodes a lattice batch to character features."""

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

    def forward(self, batch: LatticeBatch) -> Tensor:
        """float[B, T, gru_width]."""
        return self._encode(batch)[0]

    def read_words(self, batch: LatticeBatch) -> tuple[Tensor, Tensor]:
        """Character features, and attention to words float[B, T, W], averaged over layers and heads."""
        features, layers = self._encode(batch)
        n_chars, n_words = features.shape[1], batch.words.shape[1]
        if not self.config.use_words:
            return self.without_words(features, batch)
        attention = torch.stack([layer.mean(1) for layer in layers]).mean(0)  # [B, N, N or N + 1]
        return features, attention[:, :n_chars, n_chars : n_chars + n_words] * batch.char_mask[:, :, None]

    def _encode(self, batch: LatticeBatch) -> tuple[Tensor, list[Tensor]]:
        """Character features, and each layer's attention float[B, H, N, N], or N + 1 with the pivot last."""
        x = self.char_projection(self.read_chars(batch))
        n_chars = x.shape[1]
        if self.word_projection is not None:
            x = torch.cat([x, self.word_projection(self.embeddings.words(batch))], 1)  # [B, N, D]
        nodes = node_spans(batch, use_words=self.config.use_words)
        place = torch.arange(n_chars + 1, device=x.device)
        x = x + F.embedding(nodes.starts, sinusoid(place, self.config.width, "interleaved")).to(x)
        codes, allowed = node_pairs(nodes, porous=self.config.porous)
        pivot = (x * nodes.mask[:, :, None]).sum(1, keepdim=True) / nodes.mask.sum(1).clamp(min=1)[:, None, None]
        attention = []
        for layer in self.layers:
            x, pivot, probabilities = layer(x, pivot, codes, allowed, nodes.mask)
            attention.append(probabilities)
        return self.gru(x[:, :n_chars], batch.n_chars), attention


def node_pairs(nodes: NodeSpans, *, porous: bool) -> tuple[Tensor, Tensor]:
    """Relations int64[B, N, N], and the attention mask, bool[B, N, N]; a pivot is the last column."""
    codes = span_relations(nodes)
    if not porous:
        return codes, nodes.pairs
    is_near = (codes < N_NEAR) & nodes.pairs
    return F.pad(codes.clamp(max=PIVOT), (0, 1), value=PIVOT), F.pad(is_near, (0, 1), value=True)


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

    def forward(
        self, x: Tensor, pivot: Tensor, codes: Tensor, allowed: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Nodes float[B, N, D], pivot float[B, 1, D], and the nodes' attention; see `node_pairs` for the pairs."""
        keys = x
        if self.pivot_attention is not None and self.pivot_norm is not None:
            everything, all_real = torch.cat([x, pivot], 1), F.pad(mask, (0, 1), value=True)
            read, _ = self.pivot_attention(pivot, everything, all_real[:, None])
            pivot = self.pivot_norm(pivot + read)
            keys = torch.cat([x, pivot], 1)
        read, probabilities = self.attention(x, keys, allowed, codes)
        x = self.attention_norm(x + read)
        changed = self.dropout(self.ff_out(self.dropout(F.relu(self.ff_in(x)))))
        return self.ff_norm(x + changed), pivot, probabilities


class LatticeAttention(nn.Module):
    """Multi-head attention, with vectors of the relation between query and key if there are relations."""

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

    def forward(
        self, query: Tensor, keys: Tensor, allowed: Tensor, codes: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """float[B, Q, D] and the attention float[B, H, Q, K]; allowed bool[B, Q, K], codes int64[B, Q, K]."""
        relations = None
        if self.key_relations is not None and codes is not None:
            keys_of, values_of = self.key_relations, self.value_relations
            relations = Relations(
                codes,
                keys_of.expand(self.n_heads, -1, -1),
                values_of.expand(self.n_heads, -1, -1) if values_of is not None else None,
            )
        read, probabilities = masked_attention(
            by_head(self.query(query) * self.scale, self.n_heads),
            by_head(self.key(keys), self.n_heads),
            by_head(self.value(keys), self.n_heads),
            allowed,
            relations=relations,
            dropout=self.dropout,
        )
        return self.output(read), probabilities
