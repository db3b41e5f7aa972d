"""LR-CNN's settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cige.models.config import ModelConfig


@dataclass(frozen=True, kw_only=True)
class LrCnnConfig(ModelConfig):
    """LR-CNN's settings; widths and probabilities are those of the released code."""

    use_bigrams: bool = False
    """Whether to read character bigrams in addition to characters."""
    use_words: bool = True
    """False leaves words out of the gates: the same model without words."""
    width: int = 128
    """Width of the states."""
    n_layers: int = 3
    """Layers above X_0; layer l reads words of l + 1 characters."""
    n_passes: int = 2
    """Number of passes over all layers; 1 means no rethinking."""
    use_positions: bool = True
    """Whether to read sinusoids of a character's position in addition to its vector."""
    position_width: int = 30
    """Width of these sinusoids, an even number."""
    both_directions: bool = True
    """Whether there are windows that end with a character, in addition to those that begin with it."""
    shortcuts: bool = True
    """Whether layers from the second on also convolve X_0 directly to the full window."""
    global_state: bool = True
    """Whether gates read G, self-attention over the layers' states."""
    convolve_states: bool = True
    """Convolve X of the layer below; False convolves its C (as in the equations), which does not depend on words."""
    long_words: bool = True
    """Read words longer than the widest window with the top layer; the released code leaves them out."""
    state_dropout_prob: float = 0.5
    """Dropout on the inputs of convolutions, and in the scale attention."""
    attention_dropout_prob: float = 0.1
    """Dropout on the probabilities and the output of the self-attention."""
    output_dropout_prob: float = 0.0
    """Dropout before the tag scores; the released code has none."""

    def problems(self) -> list[str]:
        found = []
        if self.n_layers < 2:
            found.append("model.n_layers is 1, expected 2 or more: a single layer has no layer above it")
        if self.position_width % 2:
            found.append(f"model.position_width is {self.position_width}, expected an even number")
        return found


EQUATIONS: dict[str, Any] = {
    "use_positions": False,
    "both_directions": False,
    "shortcuts": False,
    "global_state": False,
    "convolve_states": False,
    "long_words": False,
}
"""Settings of the paper's equations only; a character then reads nothing on its left."""
