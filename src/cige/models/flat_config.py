"""FlatConfig: the settings of FLAT (`cige.models.flat`), which any runtime can read without PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cige.models.config import ModelConfig
from cige.recipes.settings import Settings

DISTANCES = ("hh", "th", "ht", "tt")  # of Eq. 4-7, between heads and tails; the query's end comes first


@dataclass(frozen=True, kw_only=True)
class FlatConfig(ModelConfig):
    """FLAT's settings; widths and probabilities are those of Table 5 and the released code."""

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
    """False reads only characters: the same model without words (a TENER with span positions)."""
    char_words: bool = False
    """Whether to read the word vector of each character in addition to its character vector (ours; as in the paper,
    words of one character are not nodes, so these vectors would not be used otherwise). Requires `use_words`."""
    word_labels: bool = False
    """Whether to add vectors of the labels of user words to those of words (ours). Requires `use_words`."""
    gazetteers: bool = False
    """Whether to add a vector for each gazetteer that lists a word to the word's vector (ours), so that the tagger
    learns what each list is worth. Requires `use_words` and `lexicon.names` or `lexicon.gazetteers`."""
    distances: tuple[str, ...] = DISTANCES
    """The relative distances in R; ("hh",) is FLAT_head, and ("hh", "tt") is the released default."""
    mask_self_matched: bool = False
    """Whether to hide the words that contain a character from it (FLAT_msm)."""
    max_distance: int | None = None
    """Hide nodes from each other whose nearest characters are more than this many positions apart: neighbours are 1
    apart (FLAT_mld uses 10)."""
    residual: bool = True
    """False doubles the output of a sub-layer instead of adding its input (released code)."""
    shared_layer_norm: bool = False
    """Whether both sub-layers share one layer normalisation (released code)."""
    scale_scores: bool = True
    """Whether to divide scores by sqrt(head_width), as in Eq. 2; the released code does not."""
    position_score: Literal["exact", "bias"] = "exact"
    """"bias" is a different and faster model, a later variant in the original repository: instead of Eq. 11, the
    position score is one number per head that depends on R_ij but not on the query."""
    key_projection: bool = True
    """Whether to use W_kE of Eq. 11; the released code uses the input itself as keys."""
    attention_bias: bool = False
    """Whether W_q, W_kE and W_v have biases (released code)."""
    fusion_bias: bool = False
    """Whether W_r has a bias (released code)."""
    sinusoid: Literal["interleaved", "concatenated"] = "interleaved"
    """Eq. 9-10, or all sines before all cosines with the released code's frequencies."""
    position_offset: int = 0
    """A number to add to every distance before Eq. 9; the released code adds the length of its longest sentence."""

    @property
    def width(self) -> int:
        return self.n_heads * self.head_width

    @property
    def score_scale(self) -> float:
        return float(self.head_width**-0.5) if self.scale_scores else 1.0

    @property
    def reads_char_words(self) -> bool:
        return self.use_words and self.char_words

    @property
    def reads_word_labels(self) -> bool:
        return self.use_words and self.word_labels

    @property
    def reads_gazetteers(self) -> bool:
        return self.use_words and self.gazetteers

    def problems(self) -> list[str]:
        if not self.distances or not set(self.distances) <= set(DISTANCES):
            return [f"model.distances is {list(self.distances)}, expected some of {', '.join(DISTANCES)}"]
        if self.width % 2:  # sines and cosines come in pairs
            return [
                f"model.n_heads is {self.n_heads} and model.head_width {self.head_width}, expected an even product: "
                "Eq. 9-10 encode distances in pairs"
            ]
        if self.max_distance is not None and self.max_distance < 0:
            return [f"model.max_distance is {self.max_distance}, expected 0 or more: a node must at least see itself"]
        return []


RELEASED: Settings = {
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
"""Settings of the released code's V0; in addition, `position_offset` must be the length of its longest sentence."""
