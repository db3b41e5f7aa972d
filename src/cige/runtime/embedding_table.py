"""EmbeddingTable: an embedding table as stored in a model folder; rows are converted to float32 on look-up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class EmbeddingTable:
    """The table that nn.embeddings.SplitEmbedding saves, memory-mapped or in memory.

    Attributes:
        tuned: float32[n_tuned, width], the first rows.
        fixed: int8, float16 or float32[n_fixed, width], the remaining rows.
        scale: float16[n_fixed, 1], the factor of each int8 row; empty for other types.
    """

    tuned: np.ndarray
    fixed: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, weights: Mapping[str, np.ndarray], name: str) -> EmbeddingTable:
        """The table with the parts `name`.tuned, `name`.fixed and `name`.scale.

        Raises:
            KeyError, ValueError: a part is missing, or the parts are inconsistent.
        """
        tuned, fixed, scale = (np.ascontiguousarray(weights[f"{name}.{part}"]) for part in ("tuned", "fixed", "scale"))
        expected = np.int8 if len(scale) else fixed.dtype
        fits = fixed.ndim == tuned.ndim == 2 and fixed.shape[1] == tuned.shape[1]
        if not fits or fixed.dtype != expected or (len(scale) and len(scale) != len(fixed)):
            raise ValueError(f"{name}: rows {fixed.shape} of {fixed.dtype} with {len(scale)} scales")
        if fixed.dtype not in (np.int8, np.float16, np.float32) or (fixed.dtype == np.int8 and len(scale) < len(fixed)):
            raise ValueError(f"{name}: rows of {fixed.dtype}; expected int8 with scales, float16 or float32")
        return cls(tuned.astype(np.float32, copy=False), fixed, scale.astype(np.float16, copy=False))

    @property
    def width(self) -> int:
        return self.tuned.shape[1]

    def __len__(self) -> int:
        return len(self.tuned) + len(self.fixed)

    def rows(self, rows: np.ndarray) -> np.ndarray:
        """float32[n, width]: the vectors of int[n] row numbers."""
        n_tuned = len(self.tuned)
        found = np.empty((len(rows), self.width), np.float32)
        is_fixed = rows >= n_tuned
        found[~is_fixed] = self.tuned[rows[~is_fixed]]
        places = rows[is_fixed] - n_tuned
        vectors = self.fixed[places].astype(np.float32)
        found[is_fixed] = vectors * self.scale[places].astype(np.float32) if len(self.scale) else vectors
        return found
