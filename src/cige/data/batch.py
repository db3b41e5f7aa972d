"""LatticeBatch: several encoded lattices as padded tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cige.data.padding import pad_lattices, pad_rows
from cige.data.vocabulary import EncodedLattice


@dataclass(frozen=True)
class LatticeBatch:
    """What every lattice model reads. Padding is row PAD, position 0.

    Attributes:
        chars, bigrams: int64[B, T] rows.
        n_chars: int64[B].
        words: int64[B, W] rows; word_starts, word_ends: int64[B, W] half-open spans.
        word_counts: int64[B, W], how often training text uses each word (see Vocabulary); 0 on user words.
        word_groups: int64[B, W], bit g is set if a word is in gazetteer g; 0 on user words.
        n_words: int64[B].
        texts: the B normalised texts.
        tags: int64[B, T] gold tag ids, or None.
    """

    chars: Tensor
    bigrams: Tensor
    n_chars: Tensor
    words: Tensor
    word_starts: Tensor
    word_ends: Tensor
    word_counts: Tensor
    word_groups: Tensor
    n_words: Tensor
    texts: tuple[str, ...]
    tags: Tensor | None = None

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def char_mask(self) -> Tensor:
        """bool[B, T]."""
        return torch.arange(self.chars.shape[1], device=self.chars.device) < self.n_chars[:, None]

    @property
    def word_mask(self) -> Tensor:
        """bool[B, W]."""
        return torch.arange(self.words.shape[1], device=self.words.device) < self.n_words[:, None]

    def to(self, device: torch.device | str) -> LatticeBatch:
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        moved: dict[str, Any] = {k: v.to(device) for k, v in values.items() if isinstance(v, Tensor)}
        return replace(self, **moved)


def collate(lattices: Sequence[EncodedLattice], tags: Sequence[np.ndarray] | None = None) -> LatticeBatch:
    """Pad `lattices` to one batch; `tags` are int64[T] each."""
    arrays = {name: torch.from_numpy(array) for name, array in vars(pad_lattices(lattices)).items()}
    return LatticeBatch(
        **arrays,
        texts=tuple(x.text for x in lattices),
        tags=torch.from_numpy(pad_rows(tags)) if tags is not None else None,
    )
