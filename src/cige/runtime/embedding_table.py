"""Vectors in NumPy: an embedding table as stored in a model folder, and the vectors of characters and bigrams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cige.data.vocabulary import UNK
from cige.models.config import ModelConfig
from cige.runtime.ragged import RaggedLattices


@dataclass(frozen=True)
class EmbeddingTable:
    """The table that nn.embeddings.SplitEmbedding saves, memory-mapped or in memory; a look-up gives float32.

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
        n_scales = len(fixed) if fixed.dtype == np.int8 else 0
        fits = fixed.ndim == tuned.ndim == 2 and fixed.shape[1] == tuned.shape[1] and len(scale) == n_scales
        if not fits or fixed.dtype not in (np.int8, np.float16, np.float32):
            given = f"rows {fixed.shape} of {fixed.dtype} with {len(scale)} scales"
            raise ValueError(f"{name}: {given}; expected int8 rows with a scale each, float16 or float32 rows")
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


class CharVectors:
    """Ragged lattices -> float32[sum of n_chars, C]: the vector of each character, then that of its bigram if used.

    Args:
        config: the configuration of the network.
        weights: all weights of the tagger, by their names in the model folder.
    """

    def __init__(self, config: ModelConfig, weights: Mapping[str, np.ndarray]):
        self._config, self._weights = config, weights
        self._char = EmbeddingTable.of(weights, "encoder.embeddings.char")
        self._bigram = EmbeddingTable.of(weights, "encoder.embeddings.bigram") if config.use_bigrams else None

    def __call__(self, batch: RaggedLattices) -> np.ndarray:
        chars = self._char.rows(batch.chars)
        if self._bigram is None:
            return chars
        vectors = self._bigram.rows(batch.bigrams)
        if self._config.bigram_backoff:
            following = np.zeros_like(chars)
            following[:-1] = chars[1:]
            following[np.cumsum(batch.n_chars)[batch.n_chars > 0] - 1] = 0  # no bigram at the end
            weight, bias = (self._weights[f"encoder.embeddings.backoff.{part}"] for part in ("weight", "bias"))
            composed = np.concatenate([chars, following], 1) @ weight.T + bias
            vectors = np.where((batch.bigrams == UNK)[:, None], composed, vectors)
        return np.concatenate([chars, vectors], 1)
