"""FLAT: a Transformer over characters and words as a flat sequence of spans, with relative positions of spans.

Li, Yan, Qiu, Huang: "FLAT: Chinese NER Using Flat-Lattice Transformer", ACL 2020.

    重  庆  人  和  药  店  重庆  重庆人  人和药店  药店      tokens: characters, then matched words   (§3.1)
    0   1   2   3   4   5   0    0      2        4        head: first character
    0   1   2   3   4   5   1    2      5        5        tail: last character

§3.1  FlatView            the flat form of a batch of lattices
§3.2  RelativeSpanFusion  Eq. 4-10: R_ij = ReLU(W_r [p_hh; p_th; p_ht; p_tt])
      SpanAttention       Eq. 11 instead of Eq. 2, then Eq. 1
§2    FlatLayer           attention and feed-forward network, each with residual connection and layer normalisation
§4.3  the two masks       `mask_self_matched`, `max_distance` (Table 2)
§4.5  FLAT_head           `distances=("hh",)` (Table 3)

The default is the paper's form. R is computed once for each distinct relative span of the batch, and in the last layer
only characters are queries, which does not change any score. (A bias on W_kR would add the same number for all j and
cancel in the softmax, so there is none.) There is a switch for each deviation of the released code from the paper:
`residual`, `shared_layer_norm`, `scale_scores`, `key_projection`, `attention_bias`, `fusion_bias`, `sinusoid`,
`position_offset`, `distances`; `RELEASED` has the settings of that code. `char_words`, `word_labels` and `gazetteers`
are our additions.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cige.data.batch import LatticeBatch
from cige.models.encoder import LatticeEncoder
from cige.models.flat_config import DISTANCES, RELEASED, FlatConfig
from cige.nn.char_features import CharFeatures
from cige.nn.embeddings import InputSizes
from cige.nn.masked_attention import heads_first
from cige.nn.relative_spans import RelativeSpans, relative_spans
from cige.nn.sinusoid import sinusoid
from cige.nn.span_attention import SpanPairs, biased_attention, span_attention
from cige.nn.transformer_layer import TransformerLayer

__all__ = ["RELEASED", "FlatConfig", "FlatEncoder"]


@dataclass(frozen=True)
class FlatView:
    """The flat lattice of a batch (§3.1): a sentence's characters, then its words, then padding.

    Attributes:
        source: int64[B, N], the index of each node in the concatenation of characters (T) and words (W).
        head, tail: int64[B, N], first and last character, inclusive; 0 for padding.
        n_nodes: int64[B], number of nodes of each sentence.
        is_word: bool[B, N].
    """

    source: Tensor
    head: Tensor
    tail: Tensor
    n_nodes: Tensor
    is_word: Tensor

    @property
    def mask(self) -> Tensor:
        """bool[B, N]: real nodes."""
        return torch.arange(self.head.shape[1], device=self.head.device) < self.n_nodes[:, None]


def flat_view(batch: LatticeBatch, *, use_words: bool = True) -> FlatView:
    n_chars = batch.n_chars
    n_nodes = n_chars + batch.n_words if use_words else n_chars
    node = torch.arange(max(1, int(n_nodes.max())), device=n_chars.device).expand(len(n_chars), -1)  # [B, N]
    n_padded = batch.chars.shape[1]  # T
    is_char, is_node = node < n_chars[:, None], node < n_nodes[:, None]
    if not use_words:
        position = node * is_node
        return FlatView(node.clamp(max=n_padded - 1), position, position, n_nodes, torch.zeros_like(is_node))
    word = (node - n_chars[:, None]).clamp(min=0, max=batch.words.shape[1] - 1)
    head = torch.where(is_char, node, batch.word_starts.gather(1, word)) * is_node
    tail = torch.where(is_char, node, batch.word_ends.gather(1, word) - 1) * is_node
    source = torch.where(is_char, node.clamp(max=n_padded - 1), n_padded + word)
    return FlatView(source, head, tail, n_nodes, is_node & ~is_char)


class FlatEncoder(LatticeEncoder[FlatConfig]):
    def __init__(self, *, config: FlatConfig, sizes: InputSizes, features: CharFeatures | None = None):
        if not config.distances or not set(config.distances) <= set(DISTANCES):  # in a folder; recipes were checked
            raise ValueError(config.problems()[0])
        super().__init__(config, sizes, features, char_words=config.reads_char_words)
        width = self.char_width + (self.embeddings.word_width if config.reads_char_words else 0)
        self.char_projection = nn.Linear(width, config.width)
        self.word_projection = nn.Linear(self.embeddings.word_width, config.width)
        for projection in (self.char_projection, self.word_projection):
            nn.init.xavier_uniform_(projection.weight)
        self.word_labels = None
        if config.reads_word_labels:  # rows: no label, the known labels, any other label
            self.word_labels = nn.Embedding(sizes.n_word_labels + 2, config.width, padding_idx=0)
            nn.init.zeros_(self.word_labels.weight)
        self.gazetteers = None
        if config.reads_gazetteers:  # a row for each gazetteer; the first group of words is the lexicon itself
            self.gazetteers = nn.Linear(sizes.n_groups - 1, config.width, bias=False)
            nn.init.zeros_(self.gazetteers.weight)
        self.fusion = RelativeSpanFusion(config)
        self.layers = nn.ModuleList(FlatLayer(config) for _ in range(config.n_layers))
        self.out_width = config.width

    def word_input(self, batch: LatticeBatch) -> Tensor:
        """float[B, W, D]: the projected vector of each word, plus those of its label and of the gazetteers it is in."""
        words = self.word_projection(self.embeddings.words(batch))
        if self.gazetteers is not None:
            lists = torch.arange(1, 1 + self.gazetteers.in_features, device=words.device)
            words = words + self.gazetteers((batch.word_groups[:, :, None] >> lists & 1).to(words.dtype))
        if self.word_labels is None or batch.word_labels is None:
            return words
        return words + self.word_labels(batch.word_labels)

    def read_words(self, batch: LatticeBatch) -> tuple[Tensor, Tensor]:
        """Character features float[B, T, D], and attention to words float[B, T, W], the mean of layers and heads."""
        features, _, layers = self.encode(batch, with_attention=True)
        attention = torch.stack([layer.mean(0)[:, : features.shape[1]] for layer in layers]).mean(0)  # [B, T, N]
        n_words = batch.words.shape[1]
        if not self.config.use_words:
            return self.without_words(features, batch)
        place = batch.n_chars[:, None] + torch.arange(n_words, device=attention.device)  # [B, W]
        place = place.clamp(max=attention.shape[2] - 1)[:, None].expand(-1, features.shape[1], -1)
        return features, attention.gather(2, place) * batch.word_mask[:, None]

    def encode(self, batch: LatticeBatch, *, with_attention: bool = False) -> tuple[Tensor, FlatView, list[Tensor]]:
        """Character features float[B, T, D], the flat view, and each layer's attention float[H, B, Q, N] or none."""
        chars = self.read_chars(batch, with_words=self.config.reads_char_words)
        nodes = torch.cat([self.char_projection(chars), self.word_input(batch)], 1)
        view = flat_view(batch, use_words=self.config.use_words)
        x = nodes.gather(1, view.source[:, :, None].expand(-1, -1, nodes.shape[2]))  # [B, N, D]
        x = x * view.mask[:, :, None]
        probabilities = []
        for number, layer in enumerate(self.layers, start=1):
            is_last = number == len(self.layers)
            if number == 1 or is_last:  # only characters are queries in the last layer
                pairs = self.pairs(view, batch if is_last else None)
            x, attention = layer(x, pairs, with_attention=with_attention)
            if with_attention:
                probabilities.append(attention)
        return x, view, probabilities

    def pairs(self, view: FlatView, only_chars: LatticeBatch | None = None) -> SpanPairs:
        """The pairs of nodes for attention.

        Args:
            only_chars: the batch, if only its characters are queries, because the output for words is not used.
        """
        hidden = hidden_pairs(view, self.config)
        if only_chars is None:
            spans = relative_spans(view.head, view.tail)
            return SpanPairs(self.fusion(spans), spans, view.n_nodes, hidden)
        n_queries = only_chars.chars.shape[1]
        spans = relative_spans(view.head, view.tail, n_char_queries=n_queries)
        hidden = None if hidden is None else hidden[:, :n_queries]
        return SpanPairs(self.fusion(spans), spans, view.n_nodes, hidden, only_chars.n_chars)


def hidden_pairs(view: FlatView, config: FlatConfig) -> Tensor | None:
    """bool[B, N, N]: the keys to which a query cannot attend according to the masks of Table 2; None without masks."""
    hidden = None
    head_i, tail_i = view.head[:, :, None], view.tail[:, :, None]
    head_j, tail_j = view.head[:, None, :], view.tail[:, None, :]
    if config.mask_self_matched:
        contains = (head_j <= head_i) & (tail_i <= tail_j)
        hidden = contains & view.is_word[:, None, :] & ~view.is_word[:, :, None]
    if config.max_distance is not None:
        gap = torch.maximum(head_i - tail_j, head_j - tail_i)  # distance of the spans, <= 0 if they meet
        far = gap > config.max_distance
        hidden = far if hidden is None else hidden | far
    return hidden


class RelativeSpanFusion(nn.Module):
    """Eq. 4-10: the distinct rows of R.

    W_r has one block per distance, and W_k p_d depends only on d, so each block is a look-up in a table of (2M + 1) x
    D, which is computed once per batch. There is no [.., 4D] x [4D, D] product per pair.
    """

    def __init__(self, config: FlatConfig):
        super().__init__()
        self.config = config
        self.weight = nn.Linear(len(config.distances) * config.width, config.width, bias=config.fusion_bias)

    def forward(self, spans: RelativeSpans) -> Tensor:
        """float[U, D]: the distinct rows of R."""
        distances = [spans.distance(name) for name in self.config.distances]
        low = min(int(d.min()) for d in distances)
        high = max(int(d.max()) for d in distances)
        position = torch.arange(low, high + 1, device=self.weight.weight.device) + self.config.position_offset
        encoding = sinusoid(position, self.config.width, self.config.sinusoid).to(self.weight.weight)  # [2M + 1, D]
        blocks = self.weight.weight.chunk(len(distances), dim=1)
        total = sum(F.embedding(d - low, encoding @ block.t()) for d, block in zip(distances, blocks, strict=True))
        if self.weight.bias is not None:
            total = total + self.weight.bias
        return torch.relu(total)  # type: ignore[arg-type]


class FlatLayer(TransformerLayer):
    """§2: `SpanAttention` and a feed-forward network."""

    def __init__(self, config: FlatConfig):
        super().__init__(
            SpanAttention(config),
            width=config.width,
            ff_width=config.ff_width,
            dropout_prob=config.ff_dropout_prob,
            residual=config.residual,
            shared_norm=config.shared_layer_norm,
        )


class SpanAttention(nn.Module):
    """Eq. 11: (q_i + u) . k_j + (q_i + v) . W_kR R_ij, scaled (Eq. 2), softmax and weighted sum (Eq. 1)."""

    def __init__(self, config: FlatConfig):
        super().__init__()
        self.config = config
        width, bias = config.width, config.attention_bias
        self.query = nn.Linear(width, width, bias=bias)
        self.key = nn.Linear(width, width, bias=bias) if config.key_projection else nn.Identity()
        self.value = nn.Linear(width, width, bias=bias)
        self.u = nn.Parameter(torch.empty(config.n_heads, config.head_width))
        if config.position_score == "exact":
            self.relation_key = nn.Linear(width, width, bias=False)  # W_kR
            self.v = nn.Parameter(torch.empty(config.n_heads, config.head_width))
        else:
            self.relation_bias = nn.Linear(width, config.n_heads, bias=False)  # R_ij -> one number per head
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.xavier_uniform_(parameter)

    def forward(self, x: Tensor, pairs: SpanPairs, *, with_attention: bool) -> tuple[Tensor, Tensor | None]:
        n_heads, head_width = self.config.n_heads, self.config.head_width
        scale = self.config.score_scale
        asking = x[:, : pairs.spans.index.shape[1]]  # [B, Q, D]
        query = heads_first(self.query(asking), n_heads)
        key, value = (heads_first(layer(x), n_heads) for layer in (self.key, self.value))
        dropout_prob = self.config.attention_dropout_prob if self.training else 0.0
        content = (query + self.u[:, None, None]) * scale
        if self.config.position_score == "bias":
            bias = self.relation_bias(pairs.relation).t()  # [H, U]
            return biased_attention(
                content, bias, key, value, pairs, dropout_prob=dropout_prob, with_attention=with_attention
            )
        position = (query + self.v[:, None, None]) * scale
        relation_key = self.relation_key.weight.view(n_heads, head_width, -1)
        return span_attention(content, position, key, value, pairs, relation_key, dropout_prob=dropout_prob)
