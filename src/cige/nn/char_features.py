"""CharFeatures: what a tagger asks of a pre-trained encoder that gives one vector per character."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cige.data.batch import LatticeBatch


@dataclass(frozen=True)
class CharPlaces:
    """The characters of a LatticeBatch that R rows of L hidden vectors belong to; a row is a window of a sentence.

    Attributes:
        sentences: int64[R], the number of each row's sentence in the batch.
        chars: int64[R, L], the number of the character in its sentence at each place, or -1 for [CLS], [SEP], words and
            padding. At a piece of several characters, it is the first of them.
        core: bool[R, L], whether the character at this place gets its vector from this row; of overlapping windows,
            this is so in one.
    """

    sentences: Tensor
    chars: Tensor
    core: Tensor

    def to(self, device: torch.device | str) -> CharPlaces:
        """The same places on `device`."""
        return CharPlaces(self.sentences.to(device), self.chars.to(device), self.core.to(device))


class Change(Protocol):
    """What changes hidden vectors."""

    def __call__(self, hidden: Tensor, places: CharPlaces) -> Tensor: ...


@dataclass(frozen=True)
class BetweenLayers:
    """A change of the hidden vectors of a pre-trained encoder after one of its layers.

    Attributes:
        after_layer: number of the layer, from 1.
        change: (hidden float[R, L, D], their places) -> float[R, L, D], which the next layer reads.
    """

    after_layer: int
    change: Change


class CharFeatures(nn.Module):
    """A pre-trained encoder: a BERT (`nn/bert.py`), or one of an extension.

    Subclasses set the attributes, and have `read` and `save_pretrained`.

    Attributes:
        bert: the network, which stays in evaluation mode if it is not fine-tuned.
        width: the size of a character's vector, and of the hidden vectors of its layers.
        n_layers: the number of its layers after which hidden vectors can be changed; 0 if they cannot.
        tuned: whether it is fine-tuned; otherwise it has no gradient.
    """

    bert: nn.Module
    width: int
    n_layers: int
    tuned: bool

    def __init__(self) -> None:
        super().__init__()
        self._memory: dict[str, Tensor] | None = None
        self._n_free = 0

    def train(self, mode: bool = True) -> CharFeatures:
        super().train(mode)
        if not self.tuned:
            self.bert.eval()  # dropout would add noise to the features of a fixed encoder
        return self

    def forward(self, batch: LatticeBatch, between: BetweenLayers | None = None) -> Tensor:
        """float[B, T, width]; zero on padding.

        Args:
            between: a change after one layer. Gradients reach it even if the encoder is not fine-tuned.
        """
        n_padded, device = batch.chars.shape[1], batch.chars.device
        if self._memory is None or between is not None:
            vectors = self.read(batch.texts, device, between)
        else:
            vectors = [self._remembered(text, device) for text in batch.texts]
        if not vectors:
            return torch.zeros(0, n_padded, self.width, device=device)
        return torch.stack([F.pad(of_text, (0, 0, 0, n_padded - len(of_text))) for of_text in vectors])

    def read(self, texts: Sequence[str], device: torch.device, between: BetweenLayers | None) -> Sequence[Tensor]:
        """The vectors of the characters of each text, float[characters, width] on `device`.

        They have gradients if the encoder is fine-tuned, or if there is a change `between` layers.
        """
        raise NotImplementedError

    def remember(self, n_bytes: int) -> None:
        """Keep the vectors of texts that were read, up to so many bytes, since training reads the same texts many
        times. Each text is then read by itself, so its vectors do not depend on which texts it was first read with,
        and a run that is resumed computes the same.

        Raises:
            ValueError: the encoder is fine-tuned, so its vectors change.
        """
        if self.tuned:
            raise ValueError("the vectors of an encoder that is fine-tuned change; they cannot be kept")
        self._memory, self._n_free = {}, n_bytes

    def _remembered(self, text: str, device: torch.device) -> Tensor:
        assert self._memory is not None
        vectors = self._memory.get(text)
        if vectors is None:
            (vectors,) = self.read([text], device, None)
            n_bytes = vectors.numel() * vectors.element_size()
            if n_bytes <= self._n_free:
                self._memory[text] = vectors.clone()  # not the padded batch that it may be a part of
                self._n_free -= n_bytes
        return vectors.to(device)

    def save_pretrained(self, folder: Path) -> None:
        """Write a folder from which it can be loaded without a network connection."""
        raise NotImplementedError
