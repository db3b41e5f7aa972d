"""The scores of spans of a pair grid, in NumPy: the counterpart of nn.pair_grid.PointerGrid.

The linear layer that makes the vectors of starts and ends is the output layer of the network, so that it is computed
where the network is, in C. What is left are products of a few numbers per span. A pair of numbers turns like a complex
number that is multiplied by another one, in one pass.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.lib.stride_tricks import as_strided

from cige.models.pair_grid_config import PairGridConfig
from cige.nn.rotary import rotary_angles

MIN_BLOCK = 64  # characters of a block; smaller blocks make more products than they save


class SpanScores:
    """Vectors of starts and ends -> scores of spans.

    Args:
        config: the settings of the head, which scores spans; `max_length` is the maximum length M of an entity.
        weights: the arrays of the head, by their names in the model folder.
        n_types: the number K of entity types.
    """

    def __init__(self, config: PairGridConfig, weights: Mapping[str, np.ndarray], n_types: int):
        assert config.max_length is not None
        self.band, self.n_types, self.head_width = config.max_length, n_types, config.head_width
        self._types: tuple[np.ndarray, np.ndarray] | None = None
        if config.efficient:
            of_types = weights["output.types.weight"].reshape(n_types, 2, 2, -1).copy()  # of [q; k], at start and end
            of_types[:, :, 0] /= _scale(config)
            self._types = of_types.reshape(n_types, -1), weights["output.types.bias"]
        self._turns = np.zeros((0, 1, 1, config.head_width // 2), np.complex64)  # by position

    @staticmethod
    def output_layer(config: PairGridConfig, weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The weight and bias of the linear layer that the network computes; its queries are scaled."""
        layer = {}
        for part in ("weight", "bias"):
            rows = weights[f"output.pairs.{part}"]
            scaled = rows.reshape(-1, 2, config.head_width, *rows.shape[1:]).copy()
            scaled[:, 0] *= _scale(config)
            layer[f"output.{part}"] = scaled.reshape(rows.shape)
        return layer

    def __call__(self, rows: np.ndarray, n_chars: np.ndarray) -> np.ndarray:
        """float32[B, T, M, K]: the score of the span [i, i + m + 1) and type k at [i, m, k]; any value beyond the end.

        Args:
            rows: float32[sum of n_chars, 2 K D or more], or 2 D if the types share vectors.
            n_chars: int[B]; T is the largest, at least 1.
        """
        d = self.head_width
        n_sets = 1 if self._types is not None else self.n_types
        padded = np.zeros((len(n_chars), max(1, int(n_chars.max(initial=0))), 2 * n_sets * d), np.float32)
        is_char = np.arange(padded.shape[1]) < np.asarray(n_chars)[:, None]
        padded[is_char] = rows[:, : padded.shape[2]]
        vectors = padded.reshape(*padded.shape[:2], n_sets, 2, d)
        turned = self._turned(vectors)
        scores = banded_products(turned[:, :, :, 0], turned[:, :, :, 1], self.band)
        if self._types is None:
            return scores
        weight, bias = self._types
        at_start, at_end = padded @ weight[:, : 2 * d].T + bias, padded @ weight[:, 2 * d :].T  # [B, T, K]
        ends = np.pad(at_end, ((0, 0), (0, self.band - 1), (0, 0)))
        scores = scores + at_start[:, :, None]
        for more in range(self.band):
            scores[:, :, more] += ends[:, more : more + scores.shape[1]]
        return scores

    def _turned(self, vectors: np.ndarray) -> np.ndarray:
        """float32[B, T, ..., D]: each pair of numbers turned by an angle that its position gives."""
        n = vectors.shape[1]
        if len(self._turns) < n:
            turns = np.exp(1j * rotary_angles(2 * n, self.head_width)).astype(np.complex64)
            self._turns = turns[:, None, None]
        return (vectors.view(np.complex64) * self._turns[:n]).view(np.float32)


def _scale(config: PairGridConfig) -> np.float32:
    return np.float32(config.head_width**-0.5)


def banded_products(queries: np.ndarray, keys: np.ndarray, band: int) -> np.ndarray:
    """float32[B, T, M, K]: q_i . k_{i + m} for 0 <= m < M, or 0 where i + m is not below T.

    Args:
        queries, keys: float32[B, T, K, D].
        band: M.
    """
    n_sentences, n_chars, n_sets, _ = queries.shape
    scores = np.empty((n_sentences, n_chars, band, n_sets), np.float32)
    queries = queries.transpose(0, 2, 1, 3)
    keys = np.pad(keys, ((0, 0), (0, band - 1), (0, 0), (0, 0))).transpose(0, 2, 3, 1)
    step = max(MIN_BLOCK, band)
    for first in range(0, n_chars, step):
        last = min(first + step, n_chars)
        # [B, K, C, C + M - 1], of which row c needs the columns c .. c + M - 1
        block = np.ascontiguousarray(queries[:, :, first:last] @ keys[:, :, :, first : last + band - 1])
        at_sentence, at_set, at_row, at_key = block.strides
        skewed = as_strided(
            block,
            (n_sentences, last - first, band, n_sets),
            (at_sentence, at_row + at_key, at_key, at_set),
            writeable=False,
        )
        scores[:, first:last] = skewed
    return scores
