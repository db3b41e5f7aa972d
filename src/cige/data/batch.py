"""LatticeBatch: several encoded lattices as padded tensors, with their texts and gold tags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cige.data.padding import PaddedLattices, pad_lattices, pad_rows
from cige.data.vocabulary import EncodedLattice


@dataclass(frozen=True, kw_only=True)
class LatticeBatch(PaddedLattices[Tensor]):
    """The input of every lattice model in PyTorch; see PaddedLattices for the shapes of its other tensors.

    Attributes:
        texts: the B normalised texts.
        tags: int64[B, T] gold tag ids, or None; with `tag_sets`, ids of sets of tags.
        tag_sets: float[K, L], log weights of the tags in each set (see TagSets), or None if every character has one
            tag.
        cells: int64[G, 4], the cells of the gold spans in the grid of a GridTagger: sentence and the numbers of
            GoldSpans; or None.
    """

    texts: tuple[str, ...]
    tags: Tensor | None = None
    tag_sets: Tensor | None = None
    cells: Tensor | None = None

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def char_mask(self) -> Tensor:
        """bool[B, T]: real characters."""
        return torch.arange(self.chars.shape[1], device=self.chars.device) < self.n_chars[:, None]

    @property
    def word_mask(self) -> Tensor:
        """bool[B, W]: real words."""
        return torch.arange(self.words.shape[1], device=self.words.device) < self.n_words[:, None]

    def to(self, device: torch.device | str) -> LatticeBatch:
        """The same batch on `device`."""
        moved: dict[str, Any] = {k: v.to(device) for k, v in vars(self).items() if isinstance(v, Tensor)}
        return replace(self, **moved)


def collate(
    lattices: Sequence[EncodedLattice],
    tags: Sequence[np.ndarray] | None = None,
    tag_sets: Tensor | None = None,
    cells: Sequence[np.ndarray] | None = None,
) -> LatticeBatch:
    """Pad `lattices` to one batch.

    Args:
        tags: int64[T] for each lattice: ids of tags, or of the rows of `tag_sets` (float[K, L]) if these are given.
        cells: int64[G, 3] for each lattice: the gold cells of a grid (see GoldSpans).
    """
    return LatticeBatch(
        **{name: torch.from_numpy(array) for name, array in vars(pad_lattices(lattices)).items()},
        texts=tuple(x.text for x in lattices),
        tags=torch.from_numpy(pad_rows(tags)) if tags is not None else None,
        tag_sets=tag_sets,
        cells=torch.from_numpy(_numbered(cells)) if cells is not None else None,
    )


def _numbered(cells: Sequence[np.ndarray]) -> np.ndarray:
    """int64[G, 4]: the rows int64[G, 3] of each sentence after the number of the sentence."""
    rows = [np.insert(of_row, 0, row, axis=1) for row, of_row in enumerate(cells)]
    return np.concatenate([np.zeros((0, 4), np.int64), *rows])
