"""DCSAN: cross-attention between words and characters, then self-attention between characters.

Zhao, Hu, Cai, Chen, Liu: "Dynamic Modeling Cross- and Self-Lattice Attention Network for Chinese NER", AAAI 2021.

    characters c_1 ... c_n              word sets BMES_1 ... BMES_n        soft lexicon, nn.soft_lexicon  (Eq. 3-5)
          | linear                            | linear                                                (Eq. 1-2, 6)
          X ----------- cross-lattice --------Y      words are queries, characters keys               (Eq. 7-9)
          |               attention           |
          X~ = Linear[X; Inter]               |                                                       (Eq. 10)
          +----------------> gate <-----------+      F = g X~ + (1 - g) Y                             (Eq. 11-14)
                              |
             l layers of self-lattice attention      TENER's relative distances, nn.relative_attention (Eq. 15-22)
                              |
                        linear -> CRF                                                                 (Eq. 23-24)

Rows of Table 3: `cross_attention=False` (X~ is X), `fusion="sum"` (F is X~ + Y), `self_attention=False` (the CRF reads
F), `use_words=False, self_attention=False` (without all three parts: the CRF reads X), and no `bert`.

Our choices: X is a linear map of a character's vectors, including those of a BERT if there is one (Eq. 1 has only the
BERT's, which are as wide as the model). Dropout is applied where the released code applies it; the paper says only that
its rate was tuned. Matrices are initialised from Xavier's uniform distribution, as in this package's FLAT.

There is a switch for each deviation of the released code from the paper: `cross_query`, `cross_activation`,
`cross_output_projection`, `fusion`, `self_output_projection`, `sinusoid`, `reverse_distance`, `weighting`,
`tune_words`, `n_self_heads`; `RELEASED` has its settings. Its fixed BERT is `bert_tuned=False`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from cige.data.batch import LatticeBatch
from cige.models.config import ModelConfig
from cige.models.encoder import LatticeEncoder
from cige.nn.attention_maps import AttentionMaps
from cige.nn.char_features import CharFeatures
from cige.nn.dropout import Dropout
from cige.nn.embeddings import InputSizes
from cige.nn.masked_attention import heads_first, softmax_over
from cige.nn.relative_attention import RelativeSelfAttention, Sinusoid, head_problem
from cige.nn.soft_lexicon import SoftLexicon, Weighting, WordSets
from cige.nn.transformer_layer import TransformerLayer
from cige.recipes.settings import Settings


@dataclass(frozen=True, kw_only=True)
class DcsanConfig(ModelConfig):
    """DCSAN's settings; widths and heads are those of its Section 4, dropout is that of the released code."""

    use_bigrams: bool = False
    """Whether to read character bigrams in addition to characters; the paper does not."""
    width: int = 768
    """Width D of the model, that of a BERT."""
    n_cross_heads: int = 8
    """Heads of cross-lattice attention."""
    n_self_heads: int = 4
    """Heads of self-lattice attention; the released code has 8."""
    n_layers: int = 2
    """Layers of self-lattice attention."""
    ff_width: int = 1536
    """Inner width of the feed-forward networks."""
    cross_dropout_prob: float = 0.5
    """Dropout on [X; Inter] before Eq. 10."""
    fusion_dropout_prob: float = 0.5
    """Dropout on F."""
    attention_dropout_prob: float = 0.15
    """Dropout on probabilities of self-lattice attention."""
    ff_dropout_prob: float = 0.15
    """Dropout inside and after the feed-forward networks."""
    output_dropout_prob: float = 0.0
    """Dropout before the tag scores."""
    use_words: bool = True
    """False leaves out the word sets and their fusion: the same model without words, self-lattice attention over X."""
    cross_attention: bool = True
    """False computes X~ from X only (Table 3)."""
    fusion: Literal["gate", "vector_gate", "sum"] = "gate"
    """Eq. 11-14, with one number g per character; with a vector g and bias (released code); or X~ + Y (Table 3)."""
    self_attention: bool = True
    """False passes F to the CRF (Table 3)."""
    cross_query: Literal["words", "chars"] = "words"
    """The queries of cross-lattice attention: words, as in Eq. 7-9, or characters (released code)."""
    cross_activation: bool = False
    """ReLU and dropout before the projections of cross-lattice attention, and biases on them (released code)."""
    cross_output_projection: bool = True
    """Whether to use W^t of Eq. 9, which the released code leaves to Eq. 10."""
    self_output_projection: bool = True
    """Whether to use W^o of Eq. 16, which the released code does not have."""
    sinusoid: Sinusoid = "interleaved"
    """Eq. 17-18, or all sines before all cosines with the released code's frequencies."""
    reverse_distance: bool = False
    """Use R of j - t instead of t - j (released code)."""
    weighting: Weighting = "smoothed"
    """Weights in a set: Eq. 4-5, or 4 z / Z (released code; see nn.soft_lexicon)."""
    smoothing: float = 1.0
    """b of Eq. 4-5, the first decile of z over the words of training text: it is 1 if a tenth of them occur once."""
    tune_words: bool = True
    """Train word vectors; False keeps all but the special ones (released code)."""

    def problems(self) -> list[str]:
        problems = []
        if self.use_words and self.cross_attention and self.width % self.n_cross_heads:
            problems.append(f"model.width is {self.width}, expected a multiple of model.n_cross_heads")
        if self.self_attention and (problem := head_problem(self.width, self.n_self_heads)):
            problems.append(f"model.n_self_heads: {problem}")
        if self.smoothing < 0:
            problems.append(f"model.smoothing is {self.smoothing}, expected 0 or more")
        return problems


RELEASED: Settings = {
    "n_self_heads": 8,
    "fusion": "vector_gate",
    "cross_query": "chars",
    "cross_activation": True,
    "cross_output_projection": False,
    "self_output_projection": False,
    "sinusoid": "concatenated",
    "reverse_distance": True,
    "weighting": "counts",
    "tune_words": False,
    "constrained": False,
}
"""Settings of the released code."""


class DcsanEncoder(LatticeEncoder[DcsanConfig]):
    def __init__(self, *, config: DcsanConfig, sizes: InputSizes, features: CharFeatures | None = None):
        super().__init__(config, sizes, features, words=config.use_words, char_words=config.use_words)
        self.char_projection = xavier(self.char_width, config.width)
        if config.use_words:
            self.soft_lexicon = SoftLexicon(
                word_width=self.embeddings.word_width,
                user_count=sizes.user_count,
                weighting=config.weighting,
                smoothing=config.smoothing,
                tuned=config.tune_words,
            )
            self.word_projection = xavier(self.soft_lexicon.width, config.width)  # Eq. 6
            self.cross = CrossLatticeAttention(config) if config.cross_attention else None
            self.fusion = None if config.fusion == "sum" else GatedFusion(config)
        self.dropout = Dropout(config.fusion_dropout_prob)
        self.layers = nn.ModuleList(self_lattice_layer(config) for _ in range(config.n_layers * config.self_attention))
        self.out_width = config.width

    def read_words(self, batch: LatticeBatch) -> tuple[Tensor, Tensor]:
        """Character features float[B, T, D], and the shares of words in the input of self-lattice attention, [B, T, W].

        The share of word w in row t is its weight in the sets that F_t depends on: those of t through Y_t, times
        1 - g_t, and, if characters are the queries, those of every j through X~_t, times g_t and the cross-lattice
        attention of t to j (the mean over heads). If words are the queries, as in the paper, cross-lattice attention
        transfers characters to t; the influence of the words on which characters these are is not counted. For
        `fusion="sum"`, g is 1/2.
        """
        features, maps, sets, share = self.encode(batch)
        if sets is None or share is None:
            return self.without_words(features, batch)
        weights = share[:, :, None] * sets.shares
        if maps.cross is not None and self.config.cross_query == "chars":
            weights = weights + (1 - share)[:, :, None] * (maps.cross.mean(0) @ sets.shares)
        return features, weights

    def attention_maps(self, batch: LatticeBatch) -> AttentionMaps:
        """Cross- and self-lattice attention (Figures 6 and 7)."""
        return self.encode(batch)[1]

    def word_sets(self, batch: LatticeBatch) -> WordSets | None:
        """The BMES sets of every character (Table 4), or None in a model without words."""
        return self.soft_lexicon.sets(batch) if self.config.use_words else None

    def encode(self, batch: LatticeBatch) -> tuple[Tensor, AttentionMaps, WordSets | None, Tensor | None]:
        """Character features float[B, T, D], attention, word sets, and 1 - g, the share of Y in F.

        The share is float[B, T], averaged if g is a vector; sets and shares are None without words.
        """
        mask = batch.char_mask
        chars = self.char_projection(self.read_chars(batch))  # X
        fused, cross, sets, share = chars, None, None, None
        if self.config.use_words:
            pooled, sets = self.soft_lexicon(batch, self.embeddings)
            words = self.word_projection(pooled)  # Y
            if self.cross is not None:
                chars, cross = self.cross(chars, words, mask)  # X~
            fused, share = self._fuse(chars, words)
        x = self.dropout(fused)
        maps = []
        for layer in self.layers:
            x, probabilities = layer(x, mask)
            maps.append(probabilities)
        return x, AttentionMaps(cross, maps, self.config.cross_query), sets, share

    def _fuse(self, chars: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        """F float[B, T, D], and the share of words in it, float[B, T]."""
        if self.fusion is None:
            return chars + words, chars.new_full(chars.shape[:2], 0.5)
        gate = self.fusion(chars, words)
        return gate * chars + (1 - gate) * words, 1 - gate.detach().mean(2)


class CrossLatticeAttention(nn.Module):
    """Eq. 7-10: each character combined with the output of the attention of its word set to all characters."""

    def __init__(self, config: DcsanConfig):
        super().__init__()
        self.config = config
        bias = config.cross_activation
        self.query, self.key, self.value = (xavier(config.width, config.width, bias=bias) for _ in range(3))
        self.output = xavier(config.width, config.width, bias=False) if config.cross_output_projection else None
        self.merge = xavier(2 * config.width, config.width)  # Eq. 10
        self.dropout = Dropout(config.cross_dropout_prob)

    def forward(self, chars: Tensor, words: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """X~ float[B, T, D], and the probabilities float[H, B, T, T] (no gradient flows through these).

        Args:
            chars, words: float[B, T, D], X and Y.
            mask: bool[B, T], real characters.
        """
        asking, answering = (words, chars) if self.config.cross_query == "words" else (chars, words)
        if self.config.cross_activation:
            asking, answering = (self.dropout(torch.relu(x)) for x in (asking, answering))
        projected = (self.query(asking), self.key(answering), self.value(answering))
        query, key, value = (heads_first(x, self.config.n_cross_heads) for x in projected)
        score = (query * query.shape[3] ** -0.5) @ key.transpose(2, 3)  # [H, B, T, T]
        probabilities = softmax_over(score, mask)
        inter = (probabilities @ value).permute(1, 2, 0, 3).flatten(2)
        if self.output is not None:
            inter = self.output(inter)
        return self.merge(self.dropout(torch.cat([chars, inter], -1))), probabilities.detach()


class GatedFusion(nn.Module):
    """Eq. 11-13: the gate between a character's vector and that of its words."""

    def __init__(self, config: DcsanConfig):
        super().__init__()
        is_vector = config.fusion == "vector_gate"
        self.char = xavier(config.width, config.width)
        self.word = xavier(config.width, config.width)
        self.gate = xavier(2 * config.width, config.width if is_vector else 1, bias=is_vector)

    def forward(self, chars: Tensor, words: Tensor) -> Tensor:
        """g, float[B, T, 1] or float[B, T, D], 0..1."""
        both = torch.cat([torch.tanh(self.char(chars)), torch.tanh(self.word(words))], -1)
        return torch.sigmoid(self.gate(both))


def self_lattice_layer(config: DcsanConfig) -> TransformerLayer:
    """Eq. 15-22."""
    attention = RelativeSelfAttention(
        width=config.width,
        n_heads=config.n_self_heads,
        output_projection=config.self_output_projection,
        reverse_distance=config.reverse_distance,
        form=config.sinusoid,
        dropout_prob=config.attention_dropout_prob,
    )
    return TransformerLayer(
        attention, width=config.width, ff_width=config.ff_width, dropout_prob=config.ff_dropout_prob
    )


def xavier(in_width: int, out_width: int, *, bias: bool = True) -> nn.Linear:
    linear = nn.Linear(in_width, out_width, bias=bias)
    nn.init.xavier_uniform_(linear.weight)
    return linear
