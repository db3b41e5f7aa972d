"""CharFeatures: what a tagger asks of a pre-trained encoder that gives one vector per character."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor, nn

from cige.data.batch import LatticeBatch


class CharFeatures(nn.Module):
    """A pre-trained encoder: a BERT (`nn/bert.py`), or one of an extension.

    Attributes:
        width: the size of a character's vector.
        tuned: whether it is fine-tuned; otherwise it has no gradient.
    """

    width: int
    tuned: bool

    def forward(self, batch: LatticeBatch) -> Tensor:
        """float[B, T, width]; zero on padding."""
        raise NotImplementedError

    def save_pretrained(self, folder: Path) -> None:
        """Write a folder from which it can be loaded without a network connection."""
        raise NotImplementedError
