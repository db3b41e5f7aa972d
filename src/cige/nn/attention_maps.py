"""AttentionMaps: the attention probabilities of a model, for explanations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor


@dataclass(frozen=True)
class AttentionMaps:
    """Attention probabilities of a batch. Rows are queries and sum to 1; rows of padding are undefined.

    Attributes:
        cross: float[H, B, T, T], attention between characters and word sets; None without cross-lattice attention.
        layers: float[H, B, T, T] for each layer of attention among characters.
        cross_query: the queries of `cross`: the word sets of characters, or the characters.
        layer_name: the name of the attention of a layer.
    """

    cross: Tensor | None
    layers: list[Tensor]
    cross_query: Literal["words", "chars"] = "words"
    layer_name: str = "self-lattice attention"

    def named(self) -> list[tuple[str, str, str, Tensor]]:
        """Each map with its name and the kinds of its queries (rows) and keys (columns)."""
        maps = []
        if self.cross is not None:
            sides = ("word sets", "characters") if self.cross_query == "words" else ("characters", "word sets")
            maps.append(("cross-lattice attention", *sides, self.cross))
        for number, layer in enumerate(self.layers, 1):
            maps.append((f"{self.layer_name}, layer {number}", "characters", "characters", layer))
        return maps
