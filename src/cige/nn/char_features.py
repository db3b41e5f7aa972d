"""CharFeatures: what a tagger asks of a pre-trained encoder that gives one vector per character."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
        self._kept: frozenset[str] = frozenset()  # texts whose vectors are kept
        self._memory: dict[tuple[str, bool], Tensor] = {}

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_kept": frozenset(), "_memory": {}}  # copies read anew

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
        kept = self._kept if between is None else frozenset()
        others = [text for text in batch.texts if text not in kept]
        read = iter(self.read(others, device, between) if others else ())
        vectors = [self._remembered(text, device) if text in kept else next(read) for text in batch.texts]
        if not vectors:
            return torch.zeros(0, n_padded, self.width, device=device)
        return torch.stack([F.pad(of_text, (0, 0, 0, n_padded - len(of_text))) for of_text in vectors])

    def read(self, texts: Sequence[str], device: torch.device, between: BetweenLayers | None) -> Sequence[Tensor]:
        """The vectors of the characters of each text, float[characters, width] on `device`.

        They have gradients if the encoder is fine-tuned, or if there is a change `between` layers.
        """
        raise NotImplementedError

    def remember(self, texts: Iterable[str], *, n_bytes: int) -> None:
        """Keep the vectors of these texts once they were read, if there is room for all of them in so many bytes.

        For training, which reads the same texts many times. Each of them is then read by itself, so its vectors do not
        depend on which texts it was first read with, and a run that is resumed computes the same.

        Raises:
            ValueError: the encoder is fine-tuned, so its vectors change.
        """
        if self.tuned:
            raise ValueError("the vectors of an encoder that is fine-tuned change; they cannot be kept")
        kept = frozenset(texts)
        is_room = 4 * self.width * sum(map(len, kept)) <= n_bytes  # of float32
        self._kept, self._memory = kept if is_room else frozenset(), {}

    def _remembered(self, text: str, device: torch.device) -> Tensor:
        key = text, torch.is_autocast_enabled(device.type)  # training may read in bfloat16, development scores do not
        if key not in self._memory:
            (vectors,) = self.read([text], device, None)
            self._memory[key] = vectors.clone()  # not the padded batch that it may be a part of
        return self._memory[key].to(device)

    def save_pretrained(self, folder: Path) -> None:
        """Write a folder from which it can be loaded without a network connection."""
        raise NotImplementedError
