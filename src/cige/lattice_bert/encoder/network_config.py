"""LatticeBertConfig: the settings of a Lattice-BERT, which can be read without PyTorch, and those of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

RelationRule = Literal["paper", "released"]


@dataclass(frozen=True, kw_only=True)
class LatticeBertConfig:
    """The settings of Lattice-BERT; widths and probabilities are those of Table 4."""

    n_tokens: int
    """Rows of the joint vocabulary V: word pieces, then words."""
    n_layers: int
    """Transformer layers."""
    n_heads: int
    """Attention heads; they share the width."""
    width: int
    """Width D of the hidden vectors."""
    embedding_width: int | None = 128
    """Width of the token embeddings, which are projected to `width`; None means `width` without projection (-EmbDe)."""
    ff_width: int | None = None
    """Inner width of the feed-forward networks; None means 4 * width."""
    position_width: int = 128
    """Width d_e of the start and end embeddings in att."""
    max_positions: int = 515
    """Number of positions, for the pieces of a text, [CLS] and [SEP]; by default 512 characters and three of these."""
    n_types: int = 2
    """Segment types."""
    dropout_prob: float = 0.1
    """Dropout on embeddings and on the output of each sub-layer."""
    attention_dropout_prob: float = 0.1
    """Dropout on attention probabilities."""
    position_scale: Literal["single", "double"] = "double"
    """Scores are divided by sqrt(d_k) ("single", the released code) or by sqrt(2 d_k) ("double", Eq. 2)."""
    relations: RelationRule | None = "paper"
    """How the seven relations r are defined: "paper", "released", or None to leave r out (-Rel)."""
    distances: bool = True
    """Whether to add b, the four clipped distances; False leaves it out (-Dis)."""
    clip_distance: int = 128
    """Larger distances are clipped to this value."""
    cls_reset: bool = True
    """Whether [CLS] has its own learned position scores instead of Eq. 2."""

    @property
    def head_width(self) -> int:
        return self.width // self.n_heads

    @property
    def inner_width(self) -> int:
        return self.ff_width or 4 * self.width

    @property
    def scale(self) -> float:
        """The factor of the products of queries and keys."""
        return (self.head_width * (2 if self.position_scale == "double" else 1)) ** -0.5

    def problems(self) -> list[str]:
        """The problems of settings that have the right types; empty if they are valid."""
        counts = ["n_tokens", "n_layers", "n_heads", "width", "embedding_width", "ff_width", "position_width"]
        counts += ["max_positions", "n_types", "clip_distance"]
        values = [(name, getattr(self, name)) for name in counts]
        problems = [
            f"{name} is {value}, expected 1 or more" for name, value in values if value is not None and value < 1
        ]
        for name in ("dropout_prob", "attention_dropout_prob"):
            if not 0 <= getattr(self, name) < 1:
                problems.append(f"{name} is {getattr(self, name)}, expected from 0 to below 1")
        if self.position_scale not in ("single", "double"):
            problems.append(f"position_scale is {self.position_scale!r}, expected 'single' or 'double'")
        if not problems and self.width % self.n_heads:
            problems.append(f"width {self.width} cannot be shared by {self.n_heads} heads (n_heads)")
        return problems


PAPER_N_PIECES, PAPER_N_WORDS = 21_128, 81_000  # appendix C: Google's Chinese vocabulary and frequent words
PAPER_N_TOKENS = PAPER_N_PIECES + PAPER_N_WORDS
SIZES = {
    "tiny": LatticeBertConfig(n_tokens=PAPER_N_TOKENS, n_layers=4, n_heads=4, width=256),
    "lite": LatticeBertConfig(n_tokens=PAPER_N_TOKENS, n_layers=6, n_heads=8, width=512),
    "base": LatticeBertConfig(n_tokens=PAPER_N_TOKENS, n_layers=12, n_heads=12, width=768),
}
"""The sizes of Table 4, and the released "tiny"; set your vocabulary size with dataclasses.replace(.., n_tokens=..)."""
RELEASED: dict[str, object] = {"position_scale": "single", "relations": "released"}
"""Settings of the released code."""
BASELINE: dict[str, object] = {"relations": None}
"""Settings of BERT-our, for a vocabulary without words: absolute positions and distances (appendix C.1)."""
