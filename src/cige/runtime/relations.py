"""Relations: tables of FLAT's relative spans (Eq. 4-8), computed once for the weights of a model.

R_ij depends only on head_i - head_j and on the reach (tail - head) of the two spans. The same is true of W_kR R_ij in
each layer, or of the number per head in the form "bias". A batch of sentences of up to M characters needs 2M - 1 rows
for each pair of reaches that occurs in it. Rows are computed when they are first needed; new tables are created for a
longer sentence or a longer word.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from cige.models.flat_config import FlatConfig
from cige.runtime.precision import BFLOAT16, FLOAT32, INT16, to_bfloat16, to_int16
from cige.runtime.row_products import row_by_row

FIRST_CHARS = 64  # M of the first tables
FIRST_REACH = 15
PADDING = 64  # floats after a row of the transposed tables, which vector instructions may read


class RelationTables:
    """The current tables. They can be used by several threads, since tables that were returned never change."""

    def __init__(self, config: FlatConfig, weights: Mapping[str, np.ndarray]):
        self._config, self._weights = config, weights
        self._tables = Relations(config, weights, n_chars=FIRST_CHARS, max_reach=FIRST_REACH)

    def for_batch(self, n_chars: int, max_reach: int) -> Relations:
        """Tables for sentences of up to `n_chars` characters and words with a reach of up to `max_reach`."""
        tables = self._tables
        if n_chars > tables.n_chars or max_reach > tables.max_reach:
            n_chars, max_reach = max(n_chars, tables.n_chars), max(max_reach, tables.max_reach)
            n_chars = -(-n_chars // FIRST_CHARS) * FIRST_CHARS
            self._tables = tables = Relations(self._config, self._weights, n_chars=n_chars, max_reach=max_reach)
        return tables


class Relations:
    """Tables for one M.

    Attributes:
        n_chars: M.
        max_reach: maximum reach of a word.
    """

    def __init__(self, config: FlatConfig, weights: Mapping[str, np.ndarray], *, n_chars: int, max_reach: int):
        self.n_chars, self.max_reach = n_chars, max_reach
        self._config, self._weights = config, weights
        self._rows: dict[tuple[int, int, int], np.ndarray] = {}
        self._columns: dict[tuple[int, int, str], np.ndarray] = {}

    def rows(self, layer: int, query_reach: int, key_reach: int) -> np.ndarray:
        """float32[2M - 1, D], W_kR R for head_i - head_j from -(M - 1) to M - 1; the width is H in the form "bias"."""
        key = layer, query_reach, key_reach
        if key not in self._rows:
            kind = "relation_key" if self._config.position_score == "exact" else "relation_bias"
            weight = self._weights[f"encoder.layers.{layer}.attention.{kind}.weight"]
            self._rows[key] = row_by_row(self._fused(query_reach, key_reach), weight)
        return self._rows[key]

    def columns(self, layer: int, key_reach: int, *, precision: str = FLOAT32) -> np.ndarray:
        """The same for queries that are characters, transposed: float32[D, 2M - 1 and PADDING more].

        Args:
            precision: bfloat16 or int16 instead of float32, with two neighbouring numbers of a head in 32 bits (an odd
                last one is paired with zero): uint32[H * pairs per head, 2M - 1 and PADDING more]. In int16, one more
                row has the scale of each column, as float32.
        """
        key = layer, key_reach, precision
        if key not in self._columns:
            rows = self.rows(layer, 0, key_reach)
            if precision == BFLOAT16:
                rows = self._in_pairs(to_bfloat16(rows))
            elif precision == INT16:
                whole, scales = to_int16(rows)
                rows = np.concatenate([self._in_pairs(whole.view(np.uint16)), scales.view(np.uint32)[:, None]], 1)
            columns = np.zeros((rows.shape[1], self.column_step), rows.dtype)
            columns[:, : len(rows)] = rows.T
            self._columns[key] = columns
        return self._columns[key]

    def _in_pairs(self, rows: np.ndarray) -> np.ndarray:
        """uint16[n, D] to uint32[n, H * pairs per head]."""
        by_head = rows.reshape(len(rows), self._config.n_heads, -1)
        paired = np.zeros((*by_head.shape[:2], -(-by_head.shape[2] // 2) * 2), np.uint16)
        paired[..., : by_head.shape[2]] = by_head
        return paired.reshape(len(rows), -1).view(np.uint32)

    @property
    def column_step(self) -> int:
        """Floats per row of `columns`: an odd number of cache lines, so that rows do not map to the same cache sets."""
        n_lines = -(-(2 * self.n_chars - 1 + PADDING) // 16)
        return 16 * (n_lines | 1)

    def _fused(self, query_reach: int, key_reach: int) -> np.ndarray:
        """float32[2M - 1, D]: R (Eq. 8)."""
        total = np.zeros((2 * self.n_chars - 1, self._config.width), np.float32)
        for name, encoded in self._encoded.items():
            shift = self.max_reach + (query_reach if name[0] == "t" else 0) - (key_reach if name[1] == "t" else 0)
            total += encoded[shift : shift + len(total)]
        bias = self._weights.get("encoder.fusion.weight.bias")
        return np.maximum(total if bias is None else total + bias, 0)

    @cached_property
    def _encoded(self) -> dict[str, np.ndarray]:
        """W_k p_d of each distance of Eq. 4-7, float32[n, D] for d from -(M - 1) - max_reach to M - 1 + max_reach."""
        config, furthest = self._config, self.n_chars - 1 + self.max_reach
        encoding = sinusoid(np.arange(-furthest, furthest + 1) + config.position_offset, config.width, config.sinusoid)
        blocks = np.split(self._weights["encoder.fusion.weight.weight"], len(config.distances), axis=1)
        return {name: row_by_row(encoding, block) for name, block in zip(config.distances, blocks, strict=True)}


def sinusoid(position: np.ndarray, width: int, form: str) -> np.ndarray:
    """float32[n, width]: the sinusoids of int64[n] positions, like nn.sinusoid."""
    half = width // 2
    step = np.log(10000.0) / (half if form == "interleaved" else max(1, half - 1))
    angle = position[:, None] * np.exp(np.arange(half) * -step)
    waves = [np.sin(angle), np.cos(angle)]
    joined = np.stack(waves, 2).reshape(len(position), -1) if form == "interleaved" else np.concatenate(waves, 1)
    return joined.astype(np.float32)
