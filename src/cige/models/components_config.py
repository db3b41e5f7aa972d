"""ComponentsConfig: the settings of the components of characters, an input that every model can have."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ComponentsConfig:
    """The settings of `nn.components`; widths are those of MECT."""

    table: str
    """A file with the components of characters (see data/component_file.py); a path, relative to the data folder."""
    embedding_width: int = 30
    """Width of the vector of a component, and of the convolution over the components of a character."""
    width: int = 50
    """Width of the vector of a character's components."""
    dropout_prob: float = 0.2
    """Dropout on the vectors of components and on that of the character; MECT uses 0.1 to 0.4."""
    unknown_prob: float = 0.0
    """How often training replaces the components of a character by the unknown component (MECT's char_dropout)."""
