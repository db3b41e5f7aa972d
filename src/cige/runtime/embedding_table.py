"""EmbeddingTable: rows of an embedding table as a model folder keeps them, widened when they are looked up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class EmbeddingTable:
    """What nn.embeddings.SplitEmbedding saves, mapped or in memory.

    Attributes:
        tuned: float32[n_tuned, width], the first rows.
        fixed: int8, float16 or float32[n_fixed, width], the rows behind them.
        scale: float16[n_fixed, 1], what each row of int8 is multiplied by; of other types it is empty.
    """

    tuned: np.ndarray
    fixed: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, weights: Mapping[str, np.ndarray], name: str) -> EmbeddingTable:
        """The table whose parts are called `name`.tuned, `name`.fixed and `name`.scale.

        Raises:
            KeyError, ValueError: a part is missing or the parts do not fit each other.
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
        """float32[n, width] of int[n] rows."""
        n_tuned = len(self.tuned)
        found = np.empty((len(rows), self.width), np.float32)
        is_fixed = rows >= n_tuned
        found[~is_fixed] = self.tuned[rows[~is_fixed]]
        places = rows[is_fixed] - n_tuned
        vectors = self.fixed[places].astype(np.float32)
        found[is_fixed] = vectors * self.scale[places].astype(np.float32) if len(self.scale) else vectors
        return found
