"""FLAT: the lattice flattened into spans, read by a Transformer whose attention knows the relative place of two spans.

Li, Yan, Qiu, Huang: "FLAT: Chinese NER Using Flat-Lattice Transformer", ACL 2020.

    重  庆  人  和  药  店  重庆  重庆人  人和药店  药店      tokens: characters, then matched words   (§3.1)
    0   1   2   3   4   5   0    0      2        4        head: first character
    0   1   2   3   4   5   1    2      5        5        tail: last character

§3.1  FlatView            the flat form of a batch of lattices
§3.2  RelativeSpanFusion  Eq. 4-10: R_ij = ReLU(W_r [p_hh; p_th; p_ht; p_tt])
      SpanAttention       Eq. 11 in place of Eq. 2, then Eq. 1
§2    FlatLayer           attention and feed-forward network, each with residual connection and layer normalisation
§4.3  the two masks       `mask_self_matched`, `max_distance` (Table 2)
§4.5  FLAT_head           `distances=("hh",)` (Table 3)

The default is the paper's form. R is computed once for each distinct relative span of the batch and W_kR is applied
to the query side, which leaves every score as it is (a bias on W_kR would add a constant in j and cancel in the
softmax, so there is none). Where the released code departs from the paper there is a switch: `residual`,
`shared_layer_norm`, `scale_scores`, `key_projection`, `attention_bias`, `fusion_bias`, `sinusoid`,
`position_offset`, `distances`; `RELEASED` names the settings that make it compute what that code computes. `char_words`
is an addition of ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cige.data.batch import LatticeBatch
from cige.models.config import ModelConfig, char_width, input_vectors, read_chars
from cige.nn.dropout import Dropout
from cige.nn.embeddings import InputSizes
from cige.nn.relative_spans import RelativeSpans, relative_spans
from cige.nn.sinusoid import sinusoid
from cige.nn.span_attention import SpanPairs, biased_attention, span_attention


@dataclass(frozen=True, kw_only=True)
class FlatConfig(ModelConfig):
    """FLAT's own choices; widths and probabilities as in Table 5 and the released code."""

    n_heads: int = 8
    """Attention heads."""
    head_width: int = 20
    """Width of a head; the model's width D is n_heads * head_width."""
    ff_width: int = 480
    """Inner width of the feed-forward network."""
    n_layers: int = 1
    """Transformer layers; the paper uses one."""
    ff_dropout_prob: float = 0.15
    """Dropout inside and after the feed-forward network."""
    attention_dropout_prob: float = 0.0
    """Dropout on attention probabilities."""
    use_words: bool = True
    """False leaves characters alone: the word-free twin (a TENER with span positions)."""
    char_words: bool = False
    """Read a character's vector as a word of one character too, beside its own (ours; words of one character are no
    nodes, here as in the paper, so these vectors would go unused). Part of `use_words`."""
    distances: tuple[str, ...] = ("hh", "th", "ht", "tt")
    """Relative distances that R sees; ("hh",) is FLAT_head, ("hh", "tt") the released default."""
    mask_self_matched: bool = False
    """Hide from a character the words that contain it (FLAT_msm)."""
    max_distance: int | None = None
    """Hide nodes with more than this many positions between them (FLAT_mld uses 10)."""
    residual: bool = True
    """False doubles a sub-layer's output in place of adding its input (released code)."""
    shared_layer_norm: bool = False
    """One layer normalisation for both sub-layers (released code)."""
    scale_scores: bool = True
    """Divide scores by sqrt(head_width), Eq. 2; the released code does not."""
    position_score: Literal["exact", "bias"] = "exact"
    """"bias" is another model, the original repository's later variant: the position's part of a score is a number a
    head that R_ij alone decides, whatever the query says. Faster, and not Eq. 11."""
    key_projection: bool = True
    """W_kE of Eq. 11; the released code uses the raw input as keys."""
    attention_bias: bool = False
    """Biases on W_q, W_kE and W_v (released code)."""
    fusion_bias: bool = False
    """A bias on W_r (released code)."""
    sinusoid: Literal["interleaved", "concatenated"] = "interleaved"
    """Eq. 9-10, or all sines before all cosines with the released code's frequencies."""
    position_offset: int = 0
    """Added to every distance before Eq. 9; the released code adds its longest sentence."""

    @property
    def width(self) -> int:
        return self.n_heads * self.head_width

    @property
    def reads_char_words(self) -> bool:
        return self.use_words and self.char_words

    def problems(self) -> list[str]:
        known = ("hh", "th", "ht", "tt")
        if not self.distances or not set(self.distances) <= set(known):
            return [f"model.distances is {list(self.distances)}, expected some of {', '.join(known)}"]
        if self.width % 2:  # a sinusoid has as many cosines as sines
            return [
                f"model.n_heads is {self.n_heads} and model.head_width {self.head_width}, expected an even product: "
                "Eq. 9-10 encode distances in pairs"
            ]
        if self.max_distance is not None and self.max_distance < 0:
            return [f"model.max_distance is {self.max_distance}, expected 0 or more: a node must at least see itself"]
        return []


RELEASED: dict[str, Any] = {
    "residual": False,
    "shared_layer_norm": True,
    "scale_scores": False,
    "key_projection": False,
    "attention_bias": True,
    "fusion_bias": True,
    "sinusoid": "concatenated",
    "distances": ("hh", "tt"),
    "constrained": False,
    "boundary_scores": False,
}
"""Settings of the released code's V0; `position_offset` must be its longest sentence in characters besides."""


@dataclass(frozen=True)
class FlatView:
    """The flat lattice of a batch (§3.1): a sentence's characters, then its words, then padding.

    Attributes:
        source: int64[B, N], where each node stands in [characters (T); words (W)] laid side by side.
        head, tail: int64[B, N], inclusive; 0 on padding.
        n_nodes: int64[B].
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


class FlatEncoder(nn.Module):
    """Lattice batch -> character features; a LatticeEncoder (see models.tagger)."""

    def __init__(self, *, config: FlatConfig, sizes: InputSizes, features: nn.Module | None = None):
        super().__init__()
        self.config = config
        self.embeddings = input_vectors(config, sizes, char_words=config.reads_char_words)
        self.features = features
        width = char_width(self.embeddings, features) + (self.embeddings.word_width if config.reads_char_words else 0)
        self.char_projection = nn.Linear(width, config.width)
        self.word_projection = nn.Linear(self.embeddings.word_width, config.width)
        for projection in (self.char_projection, self.word_projection):
            nn.init.xavier_uniform_(projection.weight)
        self.fusion = RelativeSpanFusion(config)
        self.layers = nn.ModuleList(FlatLayer(config) for _ in range(config.n_layers))
        self.out_width = config.width

    def forward(self, batch: LatticeBatch) -> Tensor:
        """float[B, T, D]."""
        return self.encode(batch, with_attention=False)[0]

    def char_input(self, batch: LatticeBatch) -> Tensor:
        """float[B, T, C]: all that is looked up for a character, side by side."""
        chars = read_chars(self.embeddings, self.features, batch)
        return torch.cat([chars, self.embeddings.char_words(batch)], -1) if self.config.reads_char_words else chars

    def read_words(self, batch: LatticeBatch) -> tuple[Tensor, Tensor]:
        """Character features float[B, T, D], and attention to words float[B, T, W], the mean of layers and heads."""
        features, _, layers = self.encode(batch, with_attention=True)
        attention = torch.stack([layer.mean(0) for layer in layers]).mean(0)  # [B, N, N]
        n_words = batch.words.shape[1]
        if not self.config.use_words:
            return features, attention.new_zeros(*features.shape[:2], n_words)
        place = batch.n_chars[:, None] + torch.arange(n_words, device=attention.device)  # [B, W]
        place = place.clamp(max=attention.shape[2] - 1)[:, None].expand(-1, features.shape[1], -1)
        return features, attention[:, : features.shape[1]].gather(2, place) * batch.word_mask[:, None]

    def encode(self, batch: LatticeBatch, *, with_attention: bool) -> tuple[Tensor, FlatView, list[Tensor]]:
        """Character features float[B, T, D], the flat view, and each layer's attention float[H, B, N, N] if asked."""
        chars = self.char_input(batch)
        nodes = torch.cat([self.char_projection(chars), self.word_projection(self.embeddings.words(batch))], 1)
        view = flat_view(batch, use_words=self.config.use_words)
        x = nodes.gather(1, view.source[:, :, None].expand(-1, -1, nodes.shape[2]))  # [B, N, D]
        x = x * view.mask[:, :, None]
        spans = relative_spans(view.head, view.tail)
        pairs = SpanPairs(self.fusion(spans), spans, view.n_nodes, hidden_pairs(view, self.config))
        probabilities = []
        for layer in self.layers:
            x, attention = layer(x, pairs, with_attention=with_attention)
            if with_attention:
                probabilities.append(attention)
        return x[:, : chars.shape[1]], view, probabilities


def hidden_pairs(view: FlatView, config: FlatConfig) -> Tensor | None:
    """bool[B, N, N]: which key nodes a query node may not see by the masks of Table 2, or None without masks."""
    hidden = None
    head_i, tail_i = view.head[:, :, None], view.tail[:, :, None]
    head_j, tail_j = view.head[:, None, :], view.tail[:, None, :]
    if config.mask_self_matched:
        contains = (head_j <= head_i) & (tail_i <= tail_j)
        hidden = contains & view.is_word[:, None, :] & ~view.is_word[:, :, None]
    if config.max_distance is not None:
        gap = torch.maximum(head_i - tail_j, head_j - tail_i)  # positions from one span to the other, <= 0 if they meet
        far = gap > config.max_distance
        hidden = far if hidden is None else hidden | far
    return hidden


class RelativeSpanFusion(nn.Module):
    """Eq. 4-10: the distinct rows of R.

    W_r splits into one block a distance, and W_k p_d depends on d alone, so each block is a look-up in a table of
    (2M + 1) x D made once a batch: no [.., 4D] x [4D, D] product is ever done per pair.
    """

    def __init__(self, config: FlatConfig):
        super().__init__()
        self.config = config
        self.weight = nn.Linear(len(config.distances) * config.width, config.width, bias=config.fusion_bias)

    def forward(self, spans: RelativeSpans) -> Tensor:
        """float[U, D]."""
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


class FlatLayer(nn.Module):
    """§2: attention and a feed-forward network, each followed by residual connection and layer normalisation."""

    def __init__(self, config: FlatConfig):
        super().__init__()
        self.residual = config.residual
        self.attention = SpanAttention(config)
        self.attention_norm = nn.LayerNorm(config.width)
        self.ff_in = nn.Linear(config.width, config.ff_width)
        self.ff_out = nn.Linear(config.ff_width, config.width)
        self.ff_norm = None if config.shared_layer_norm else nn.LayerNorm(config.width)
        self.dropout = Dropout(config.ff_dropout_prob)
        for linear in (self.ff_in, self.ff_out):
            nn.init.xavier_uniform_(linear.weight)

    def forward(self, x: Tensor, pairs: SpanPairs, *, with_attention: bool) -> tuple[Tensor, Tensor | None]:
        """float[B, N, D] and the attention probabilities float[H, B, N, N], or None if not asked for."""
        attended, probabilities = self.attention(x, pairs, with_attention=with_attention)
        x = self.attention_norm(attended + (x if self.residual else attended))
        changed = self.dropout(self.ff_out(torch.relu(self.dropout(self.ff_in(x)))))
        norm = self.ff_norm or self.attention_norm
        return norm(changed + (x if self.residual else changed)), probabilities


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
            self.relation_bias = nn.Linear(width, config.n_heads, bias=False)  # R_ij -> a number a head
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.xavier_uniform_(parameter)

    def forward(self, x: Tensor, pairs: SpanPairs, *, with_attention: bool) -> tuple[Tensor, Tensor | None]:
        n_heads, head_width = self.config.n_heads, self.config.head_width
        scale = head_width**-0.5 if self.config.scale_scores else 1.0

        def by_head(y: Tensor) -> Tensor:  # [B, N, D] -> [H, B, N, D / H]
            return y.view(*y.shape[:2], n_heads, head_width).permute(2, 0, 1, 3)

        query, key, value = by_head(self.query(x)), by_head(self.key(x)), by_head(self.value(x))
        dropout_prob = self.config.attention_dropout_prob if self.training else 0.0
        if self.config.position_score == "bias":
            query = (query + self.u[:, None, None]) * scale
            bias = self.relation_bias(pairs.relation).t()  # [H, U]
            return biased_attention(
                query, bias, key, value, pairs, dropout_prob=dropout_prob, with_attention=with_attention
            )
        # W_kR moves to the query side: (q + v) . (W_kR R) = (W_kR^T (q + v)) . R, once a row and not once a pair.
        blocks = self.relation_key.weight.view(n_heads, 1, head_width, -1)
        return span_attention(
            (query + self.u[:, None, None]) * scale,
            ((query + self.v[:, None, None]) * scale) @ blocks,  # [H, B, N, D]
            key,
            value,
            pairs,
            dropout_prob=dropout_prob,
        )
