"""TENER: a Transformer over characters whose attention uses direction and distance, without a lexicon.

Yan, Deng, Li, Qiu: "TENER: Adapting Transformer Encoder for Named Entity Recognition", 2019.

    重  庆  人  和  药  店          [character; bigram] -> linear
     \\   \\  |  /   /   /
      A(人, j) = q . k_j + q . R_(t - j) + u . k_j + v . R_(t - j)         unscaled softmax
                  |
        residual, normalisation, feed-forward network, again             l layers -> linear -> CRF

§4.2  RelativeSelfAttention (nn/relative_attention.py): R distinguishes left from right, keys are not projected, and
      scores are not divided by sqrt(d)

There is no character encoder inside words (§4.1), because Chinese characters have no spelling. The default is the
paper's form; there is a switch for each deviation of the released code, and `RELEASED` has its settings. Where widths
and dropout probabilities differ between data sets, the defaults are those for Weibo.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from cige.data.batch import LatticeBatch
from cige.models.config import ModelConfig
from cige.models.encoder import LatticeEncoder
from cige.nn.attention_maps import AttentionMaps
from cige.nn.char_features import CharFeatures
from cige.nn.embeddings import InputSizes
from cige.nn.relative_attention import RelativeSelfAttention, Sinusoid, head_problem
from cige.nn.transformer_layer import TransformerLayer
from cige.recipes.settings import Settings


@dataclass(frozen=True, kw_only=True)
class TenerConfig(ModelConfig):
    """TENER's settings; widths and probabilities are those of the released code for Weibo."""

    embed_dropout_prob: float = 0.3
    """Dropout on character and bigram vectors."""
    n_heads: int = 4
    """Attention heads."""
    head_width: int = 32
    """Width of a head; the model's width D is n_heads * head_width."""
    n_layers: int = 1
    """Transformer layers."""
    ff_width: int = 256
    """Inner width of the feed-forward network; 2 D in the released code."""
    ff_dropout_prob: float = 0.15
    """Dropout inside and after the feed-forward network."""
    attention_dropout_prob: float = 0.15
    """Dropout on attention probabilities."""
    output_dropout_prob: float = 0.4
    """Dropout before the tag scores."""
    scale_scores: bool = False
    """Divide scores by sqrt(head_width), which the paper found worse."""
    key_projection: bool = False
    """Project keys (released code)."""
    key_positions: bool = False
    """Add k_j . R to the scores (released code)."""
    output_projection: bool = True
    """Project the concatenated heads; the released code does not."""
    sinusoid: Sinusoid = "interleaved"
    """R as in the paper, or all sines before all cosines with the released code's frequencies."""
    reverse_distance: bool = False
    """Use R of j - t instead of t - j (released code)."""

    @property
    def width(self) -> int:
        return self.n_heads * self.head_width

    def problems(self) -> list[str]:
        problem = head_problem(self.width, self.n_heads)
        return [f"model.head_width is {self.head_width}, expected an even number ({problem})"] if problem else []


RELEASED: Settings = {
    "key_projection": True,
    "key_positions": True,
    "output_projection": False,
    "sinusoid": "concatenated",
    "reverse_distance": True,
}
"""Settings of the current released code; when the paper was published, keys were not projected."""


class TenerEncoder(LatticeEncoder[TenerConfig]):
    def __init__(self, *, config: TenerConfig, sizes: InputSizes, features: CharFeatures | None = None):
        super().__init__(config, sizes, features, words=False)
        self.projection = nn.Linear(self.char_width, config.width)
        nn.init.xavier_uniform_(self.projection.weight)
        self.layers = nn.ModuleList(_layer(config) for _ in range(config.n_layers))
        self.out_width = config.width

    def encode(self, batch: LatticeBatch) -> tuple[Tensor, list[Tensor]]:
        """Character features float[B, T, D], and each layer's attention float[H, B, T, T]."""
        x = self.projection(self.read_chars(batch))
        maps = []
        for layer in self.layers:
            x, probabilities = layer(x, batch.char_mask)
            maps.append(probabilities)
        return x, maps

    def attention_maps(self, batch: LatticeBatch) -> AttentionMaps:
        """The attention of each layer, as explanations show it."""
        return AttentionMaps(None, self.encode(batch)[1], layer_name="self-attention")


def _layer(config: TenerConfig) -> TransformerLayer:
    attention = RelativeSelfAttention(
        width=config.width,
        n_heads=config.n_heads,
        scaled=config.scale_scores,
        key_projection=config.key_projection,
        output_projection=config.output_projection,
        key_positions=config.key_positions,
        reverse_distance=config.reverse_distance,
        form=config.sinusoid,
        dropout_prob=config.attention_dropout_prob,
    )
    return TransformerLayer(
        attention, width=config.width, ff_width=config.ff_width, dropout_prob=config.ff_dropout_prob
    )
