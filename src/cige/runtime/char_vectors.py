"""CharVectors: the character and bigram vectors of a model, in NumPy (`nn.embeddings.LatticeVectors.chars`)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cige.data.vocabulary import UNK
from cige.models.config import ModelConfig
from cige.runtime.embedding_table import EmbeddingTable
from cige.runtime.ragged import RaggedLattices


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
