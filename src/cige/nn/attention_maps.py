"""AttentionMaps: what the attention of a model saw, as probabilities that can be shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor


@dataclass(frozen=True)
class AttentionMaps:
    """Who attended to whom in a batch; rows sum to 1, those of padding hold no meaning.

    Attributes:
        cross: float[H, B, T, T] between the characters and their word sets: row t is who asks, column j who answers.
            None without cross-lattice attention.
        layers: float[H, B, T, T] of each layer of attention among characters.
        cross_query: who asks in `cross`, the word sets of character t or the character itself.
        layer_name: what the attention of a layer is called.
    """

    cross: Tensor | None
    layers: list[Tensor]
    cross_query: Literal["words", "chars"] = "words"
    layer_name: str = "self-lattice attention"

    def named(self) -> list[tuple[str, str, str, Tensor]]:
        """Each map with its name, who asks (rows) and who answers (columns)."""
        found = []
        if self.cross is not None:
            sides = ("word sets", "characters") if self.cross_query == "words" else ("characters", "word sets")
            found.append(("cross-lattice attention", *sides, self.cross))
        for number, layer in enumerate(self.layers, 1):
            found.append((f"{self.layer_name}, layer {number}", "characters", "characters", layer))
        return found
