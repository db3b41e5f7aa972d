"""NFLAT: characters ask words by a cross-attention, then characters ask characters; words never ask.

Wu, Song, Feng, Wu: "NFLAT: Non-Flat-Lattice Transformer for Chinese Named Entity Recognition", 2022 (arXiv 2205.05832).

    characters c_1 ... c_T             no word, then the matched words w_1 ... w_W          (non-flat lattice)
          | linear                            | linear
         x_c ------- InterFormer ----------- x_w       characters are queries, words are keys and values
                         |
              Transformer over characters              TENER's attention, nn.relative_attention
                         |
                   linear -> CRF

InterFormer    score(i, j) = (q_i + u) . k_j + (q_i + z) . W_r R_ij, unscaled softmax over the words j of the sentence
WordRelations  R_ij = ReLU(W_p [p(i - head_j); p(i - tail_j)] + b)
Transformer    RelativeSelfAttention of nn/relative_attention.py, with projected keys and no output projection
Both attentions are in a TransformerLayer, with a feed-forward network, residual connections and layer normalisation.

FLAT has the four distances between two heads and two tails. A character's head is its tail, so two of them repeat the
other two, and a linear map of all four is one of these two. "No word" is a word of every sentence, with a vector of its
own and both distances 0: a character attends to it if it believes none of the words, or if there are none. R depends
only on i - head_j and the length of j, so it is computed once for each of these in a batch, without a tensor [T, W, D].
Biases of keys and of W_r would add the same number for all j and cancel in the softmax, so there are none.

The default is the paper's form; there is a switch for each deviation of the released code: `negative_distance`,
`sinusoid`, `key_positions`, `reverse_distance` and `output_dropout_prob` (its dropout before the tag scores has no
effect); `RELEASED` has its settings. Its four other tables of distances are never read and have no counterpart here.
We read the paper through descriptions of its equations, in which scores are not divided by sqrt(d); `scale_scores`
divides those of both attentions, which vectors need that are longer than the unit vectors of the released code.
`order`, `char_words` and a model without words are our additions. Where widths and dropout probabilities differ between
data sets, the defaults are those for Weibo.
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
from cige.nn.attention_maps import AttentionMaps
from cige.nn.char_features import CharFeatures
from cige.nn.embeddings import InputSizes, no_word_vector
from cige.nn.masked_attention import heads_first
from cige.nn.relative_attention import RelativeSelfAttention, Sinusoid, head_problem
from cige.nn.relative_spans import RelativeSpans
from cige.nn.sinusoid import sinusoid
from cige.nn.span_attention import SpanPairs, span_attention
from cige.nn.transformer_layer import TransformerLayer
from cige.recipes.settings import Settings

N_POSITIONS = 1025  # rows of the released code's table of positions, in which a negative row counts from the end


@dataclass(frozen=True, kw_only=True)
class NflatConfig(ModelConfig):
    """NFLAT's settings; widths and probabilities are those of the released code for Weibo."""

    embed_dropout_prob: float = 0.6
    """Dropout on character and bigram vectors."""
    word_dropout_prob: float = 0.4
    """Dropout on word vectors."""
    n_heads: int = 12
    """Heads of the attention to words."""
    head_width: int = 16
    """Width of such a head; the model's width D is n_heads * head_width."""
    n_self_heads: int = 6
    """Heads of the attention among characters, which divide D."""
    n_layers: int = 1
    """Layers of the Transformer over characters; the InterFormer is one layer in any case."""
    ff_width: int = 384
    """Inner width of the feed-forward networks; 2 D in the paper."""
    ff_dropout_prob: float = 0.0
    """Dropout inside and after the feed-forward networks."""
    attention_dropout_prob: float = 0.2
    """Dropout on attention probabilities, to words and among characters."""
    output_dropout_prob: float = 0.2
    """Dropout before the tag scores; it has no effect in the released code."""
    use_words: bool = True
    """False leaves out the InterFormer: the same model without words, a TENER."""
    char_words: bool = False
    """Whether to read the word vector of each character in addition to its character vector (ours, as in FLAT).
    Requires `use_words`."""
    order: Literal["words_first", "characters_first"] = "words_first"
    """Whether characters ask words before they ask each other, as in the paper, or after."""
    scale_scores: bool = False
    """Whether to divide scores by the square root of the width of a head, those of words and those among characters."""
    negative_distance: Literal["signed", "wrapped"] = "signed"
    """What encodes a distance of -n: the sinusoid of -n, or that of 1025 - n, the row of a table that the released code
    reads by mistake."""
    sinusoid: Sinusoid = "interleaved"
    """The encoding p as in the paper, or all sines before all cosines with the released code's frequencies."""
    key_positions: bool = False
    """Whether to add k_j . R to the scores among characters (released code)."""
    reverse_distance: bool = False
    """Use R of j - t instead of t - j among characters (released code)."""

    @property
    def width(self) -> int:
        return self.n_heads * self.head_width

    @property
    def reads_char_words(self) -> bool:
        return self.use_words and self.char_words

    def problems(self) -> list[str]:
        problem = head_problem(self.width, self.n_self_heads)
        if problem is None:
            return []
        return [
            f"model.n_heads is {self.n_heads}, model.head_width {self.head_width} and model.n_self_heads "
            f"{self.n_self_heads}, which do not fit together ({problem})"
        ]


RELEASED: Settings = {
    "negative_distance": "wrapped",
    "sinusoid": "concatenated",
    "key_positions": True,
    "reverse_distance": True,
    "output_dropout_prob": 0.0,
    "constrained": False,
    "boundary_scores": False,
}
"""Settings of the released code."""


class NflatEncoder(LatticeEncoder[NflatConfig]):
    def __init__(self, *, config: NflatConfig, sizes: InputSizes, features: CharFeatures | None = None):
        super().__init__(config, sizes, features, words=config.use_words, char_words=config.reads_char_words)
        word_width = self.embeddings.word_width
        char_width = self.char_width + (word_width if config.reads_char_words else 0)
        self.char_projection = nn.Linear(char_width, config.width)
        nn.init.xavier_uniform_(self.char_projection.weight)
        self.inter: TransformerLayer | None = None
        if config.use_words:
            self.no_word = no_word_vector(word_width)
            self.word_projection = nn.Linear(word_width, config.width)
            nn.init.xavier_uniform_(self.word_projection.weight)
            self.inter = _layer(InterFormer(config), config)
        self.layers = nn.ModuleList(_layer(_self_attention(config), config) for _ in range(config.n_layers))
        self.out_width = config.width

    def read_words(self, batch: LatticeBatch) -> tuple[Tensor, Tensor]:
        """Character features float[B, T, D], and attention to words float[B, T, W], averaged over heads."""
        features, to_words, _ = self.encode(batch)
        if to_words is None:
            return self.without_words(features, batch)
        return features, to_words.mean(0)[:, :, 1:] * batch.word_mask[:, None] * batch.char_mask[:, :, None]

    def attention_maps(self, batch: LatticeBatch) -> AttentionMaps:
        """The attention of each layer among characters, as explanations show it."""
        return AttentionMaps(None, self.encode(batch)[2], layer_name="self-attention")

    def encode(self, batch: LatticeBatch) -> tuple[Tensor, Tensor | None, list[Tensor]]:
        """Character features float[B, T, D], attention to no word and to words, and that of each layer.

        Attention to words is float[H, B, T, 1 + W], or None without words; that of a layer is float[H', B, T, T].
        """
        x = self.char_projection(self.read_chars(batch, with_words=self.config.reads_char_words))
        to_words: Tensor | None = None
        maps: list[Tensor] = []
        if self.inter is not None and self.config.order == "words_first":
            x, to_words = self.inter(x, self.word_input(batch), batch)
        for layer in self.layers:
            x, probabilities = layer(x, batch.char_mask)
            maps.append(probabilities)
        if self.inter is not None and self.config.order == "characters_first":
            x, to_words = self.inter(x, self.word_input(batch), batch)
        return x, to_words, maps

    def word_input(self, batch: LatticeBatch) -> Tensor:
        """float[B, 1 + W, D]: the projected vectors of "no word" and of the words."""
        words = self.embeddings.words(batch)
        no_word = self.embeddings.word_dropout(self.no_word.expand(len(words), 1, -1))
        return self.word_projection(torch.cat([no_word.to(words), words], 1))


class InterFormer(nn.Module):
    """Attention of characters to words, with the relative positions of both ends of a word."""

    def __init__(self, config: NflatConfig):
        super().__init__()
        self.config = config
        width = config.width
        self.query, self.value = nn.Linear(width, width), nn.Linear(width, width)
        self.key = nn.Linear(width, width, bias=False)
        self.relation = WordRelations(config)
        self.relation_key = nn.Linear(width, width, bias=False)  # W_r
        self.u = nn.Parameter(torch.empty(config.n_heads, config.head_width))
        self.z = nn.Parameter(torch.empty(config.n_heads, config.head_width))
        for weight in (self.query.weight, self.value.weight, self.key.weight, self.relation_key.weight, self.u, self.z):
            nn.init.xavier_uniform_(weight)

    def forward(self, chars: Tensor, words: Tensor, batch: LatticeBatch) -> tuple[Tensor, Tensor]:
        """Attend from characters float[B, T, D] to "no word" and the words of their sentence, float[B, 1 + W, D].

        Returns:
            float[B, T, D], and the probabilities float[H, B, T, 1 + W] before dropout (no gradient flows through
            these). Rows of padding are undefined, but contain no NaN.
        """
        n_heads, head_width = self.config.n_heads, self.config.head_width
        scale = head_width**-0.5 if self.config.scale_scores else 1.0
        query = heads_first(self.query(chars), n_heads)
        return span_attention(
            (query + self.u[:, None, None]) * scale,
            (query + self.z[:, None, None]) * scale,
            heads_first(self.key(words), n_heads),
            heads_first(self.value(words), n_heads),
            self.relation(batch),
            self.relation_key.weight.view(n_heads, head_width, -1),
            dropout_prob=self.config.attention_dropout_prob if self.training else 0.0,
        )


class WordRelations(nn.Module):
    """R: a row for each distance between a character and a word's head, and each length of a word; last, "no word".

    W_p has one block per distance, and W p(n) depends only on n, so each block is a look-up in a table of 2T - 1 rows,
    which is computed once per batch.
    """

    def __init__(self, config: NflatConfig):
        super().__init__()
        self.config = config
        self.fusion = nn.Linear(2 * config.width, config.width)  # W_p

    def forward(self, batch: LatticeBatch) -> SpanPairs:
        """The rows of R, the row of each pair of a character and a word, and the numbers of both in each sentence."""
        n_chars = batch.chars.shape[1]  # T
        of_head, of_tail = self.fusion.weight.chunk(2, 1)
        distance = torch.arange(1 - n_chars, n_chars, device=batch.chars.device)
        encoded = self.encode(distance).to(of_head)  # [2T - 1, D]
        head_rows, tail_rows = F.linear(encoded, of_head, self.fusion.bias), F.linear(encoded, of_tail)
        reach = (batch.word_ends - batch.word_starts - 1) * batch.word_mask  # [B, W], tail - head
        reaches, reach_number = torch.unique(reach, return_inverse=True)  # few distinct lengths
        # Rows of words that would end after the text exist in the table, but no pair reads them.
        to_tail = (torch.arange(len(distance), device=reach.device)[:, None] - reaches).clamp(min=0)
        known = head_rows[:, None] + tail_rows[to_tail]  # [2T - 1, lengths, D]
        none = (head_rows + tail_rows)[n_chars - 1 : n_chars]  # both distances are 0
        relation = torch.relu(torch.cat([known.flatten(0, 1), none]))  # [U, D]

        first = (n_chars - 1 - batch.word_starts) * len(reaches) + reach_number  # [B, W], the row of character 0
        index = first[:, None] + (torch.arange(n_chars, device=reach.device) * len(reaches))[:, None]  # [B, T, W]
        index = F.pad(index * batch.word_mask[:, None], (1, 0), value=len(relation) - 1).int()
        head_distance = F.pad(distance.repeat_interleave(len(reaches)), (0, 1))
        key_reach = F.pad(reaches.repeat(len(distance)), (0, 1))
        spans = RelativeSpans(index, head_distance, torch.zeros_like(head_distance), key_reach)
        return SpanPairs(relation, spans, batch.n_words + 1, n_queries=batch.n_chars)

    def encode(self, distance: Tensor) -> Tensor:
        """float[n, D], p of int64[n] distances."""
        if self.config.negative_distance == "wrapped":
            distance = torch.where(distance < 0, distance + N_POSITIONS, distance)
        return sinusoid(distance, self.config.width, self.config.sinusoid)


def _self_attention(config: NflatConfig) -> RelativeSelfAttention:
    return RelativeSelfAttention(
        width=config.width,
        n_heads=config.n_self_heads,
        scaled=config.scale_scores,
        key_projection=True,
        key_positions=config.key_positions,
        reverse_distance=config.reverse_distance,
        form=config.sinusoid,
        dropout_prob=config.attention_dropout_prob,
    )


def _layer(attention: nn.Module, config: NflatConfig) -> TransformerLayer:
    return TransformerLayer(
        attention, width=config.width, ff_width=config.ff_width, dropout_prob=config.ff_dropout_prob
    )
