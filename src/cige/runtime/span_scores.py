"""The scores of spans of a pair grid, in NumPy: the counterpart of nn.pair_grid.PointerGrid.

The linear layer that makes the vectors of starts and ends is the output layer of the network, so that it is computed
where the network is, in C. What is left are products of a few numbers per span. A pair of numbers turns like a complex
number that is multiplied by another one, in one pass.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from cige.models.pair_grid_config import PairGridConfig
from cige.nn.rotary import rotary_angles

MIN_BLOCK = 32  # characters of a block; smaller blocks make more products than they save


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
        self._turns = np.zeros((0, 1, config.head_width // 2), np.complex64)  # by position

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

        Sentences are computed one by one, so that what is between stays in the cache.

        Args:
            rows: float32[sum of n_chars, 2 K D or more], or 2 D if the types share vectors.
            n_chars: int[B]; T is the largest, at least 1.
        """
        n_sets = 1 if self._types is not None else self.n_types
        longest = max(1, int(n_chars.max(initial=0)))
        # Spans that begin at one character lie side by side, for each type apart: numbers are moved in such runs.
        scores = np.zeros((len(n_chars), self.n_types, longest, self.band), np.float32)
        first = 0  # row of the sentence
        for of_sentence, n in zip(scores, n_chars.tolist(), strict=True):
            if n == 0:
                continue
            vectors = rows[first : first + n, : 2 * n_sets * self.head_width]
            banded_products(*self._turned(vectors, n_sets), self.band, of_sentence[:n_sets])
            if self._types is not None:
                self._add_types(vectors, of_sentence)
            first += n
        return scores.transpose(0, 2, 3, 1)

    def _add_types(self, rows: np.ndarray, scores: np.ndarray) -> None:
        """Add what the types score at starts and ends to the scores of spans, which the first type has."""
        assert self._types is not None
        weight, bias = self._types  # [K, 4 D], [K]
        n, d = len(rows), self.head_width
        at_start = weight[:, : 2 * d] @ rows.T + bias[:, None]  # [K, n]
        at_end = np.zeros((self.n_types, n + self.band - 1), np.float32)
        at_end[:, :n] = weight[:, 2 * d :] @ rows.T
        at_end = sliding_window_view(at_end, self.band, axis=1)  # [K, n, M]
        scores[:, :n] = scores[:1, :n] + at_start[:, :, None] + at_end

    def _turned(self, rows: np.ndarray, n_sets: int) -> tuple[np.ndarray, np.ndarray]:
        """Queries float32[K, n, D] and keys float32[K, D, n + M - 1], zeros at the end: each pair of numbers is turned
        by an angle that its position gives."""
        n, turns = len(rows), self._turns
        if len(turns) < n:  # `turns` is this thread's own: another may put a shorter table in its place
            turns = np.exp(1j * rotary_angles(2 * n, self.head_width)).astype(np.complex64)[:, None]
            self._turns = turns
        turned = np.zeros((n + self.band - 1, n_sets, 2, self.head_width), np.float32)
        pairs = rows.view(np.complex64).reshape(n, 2 * n_sets, self.head_width // 2)
        np.multiply(pairs, turns[:n], out=turned[:n].view(np.complex64).reshape(pairs.shape))
        return turned[:n, :, 0].transpose(1, 0, 2), turned[:, :, 1].transpose(1, 2, 0)


def _scale(config: PairGridConfig) -> np.float32:
    return np.float32(config.head_width**-0.5)


def banded_products(queries: np.ndarray, keys: np.ndarray, band: int, out: np.ndarray) -> None:
    """Write q_i . k_{i + m} for 0 <= m < M to out[:, i, m], float32[K, n or more, M].

    Args:
        queries: float32[K, n, D].
        keys: float32[K, D, n + M - 1].
    """
    n_sets, n_chars, _ = queries.shape
    step = max(MIN_BLOCK, band)
    for first in range(0, n_chars, step):
        last = min(first + step, n_chars)
        # [K, C, C + M - 1], of which row c needs the columns c .. c + M - 1
        block = np.ascontiguousarray(queries[:, first:last] @ keys[:, :, first : last + band - 1])
        at_set, at_row, at_key = block.strides
        strides = (at_set, at_row + at_key, at_key)
        out[:, first:last] = np.ndarray((n_sets, last - first, band), np.float32, block, strides=strides)
