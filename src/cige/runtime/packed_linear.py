"""PackedLinear: a linear layer whose weights are stored in the order in which the compiled product reads them."""

from __future__ import annotations

import numpy as np

from cige.runtime.native import Library, address
from cige.runtime.precision import BFLOAT16, FLOAT32, INT8, INT16, to_bfloat16, to_int8, to_int16

CACHE_LINE = 64


class PackedLinear:
    """Weights float[n_out, n_in] and a bias float[n_out] in panels.

    Args:
        n_parts: number of equal parts of the outputs, each of which is padded to whole panels.
        precision: a precision that the library supports (runtime.precision).

    Attributes:
        n_out: width of an output row, including padding.
        struct: the struct Linear of native/product.h.
    """

    def __init__(
        self,
        library: Library,
        weight: np.ndarray,
        bias: np.ndarray | None = None,
        *,
        n_parts: int = 1,
        precision: str = FLOAT32,
    ):
        panel = library.panel_width()
        n_in, width = weight.shape[1], len(weight) // n_parts
        padded_width = -(-width // panel) * panel
        weight = parts_padded(weight, n_parts, padded_width)
        self.n_out = n_parts * padded_width
        own_bias, own_scales = aligned(self.n_out), None
        if bias is not None:
            own_bias[:] = parts_padded(bias, n_parts, padded_width)
        if precision == BFLOAT16:
            rows = in_groups(to_bfloat16(weight), 0, library.group_bytes())
        elif precision in (INT8, INT16):
            whole, scales = to_int8(weight) if precision == INT8 else to_int16(weight)
            if library.whole_bytes(library.constants[precision.upper()]) == 2:
                rows = in_groups(whole.astype(np.int16).view(np.uint16), 0, library.group_bytes())
            else:
                added = library.int8_offset()
                rows = in_groups((whole.astype(np.int16) + added).astype(np.uint8), added, library.group_bytes())
            own_scales = aligned(self.n_out)
            own_scales[:] = scales
        else:
            rows = weight.view(np.uint32)
        panels = aligned(rows.nbytes // 4)
        by_panel = rows.reshape(-1, panel, rows.shape[1]).transpose(0, 2, 1)
        panels.view(rows.dtype)[:] = by_panel.reshape(-1)
        self.struct = library.struct(
            "Linear",
            n_in=n_in,
            n_panels=self.n_out // panel,
            panels=panels,
            bias=own_bias,
            precision=library.constants[precision.upper()],
            scales=own_scales,
        )


def in_groups(rows: np.ndarray, filling: int, n_bytes: int) -> np.ndarray:
    """Pack uint8 or uint16 rows [n, n_in] into uint32 or uint64 [n, n_groups], each of as many numbers as fit in."""
    of_group = n_bytes // rows.itemsize
    padded = np.full((len(rows), -(-rows.shape[1] // of_group) * of_group), filling, rows.dtype)
    padded[:, : rows.shape[1]] = rows
    return padded.view({4: np.uint32, 8: np.uint64}[n_bytes])


def parts_padded(x: np.ndarray, n_parts: int, width: int) -> np.ndarray:
    """float32, with each of the equal parts of the first axis padded with zeros to `width`."""
    parts = np.split(x, n_parts)
    padded = np.zeros((n_parts, width, *x.shape[1:]), np.float32)
    for k, part in enumerate(parts):
        padded[k, : len(part)] = part
    return padded.reshape(-1, *x.shape[1:])


def aligned(n: int) -> np.ndarray:
    """float32[n] of zeros, aligned to a cache line."""
    memory = np.zeros(n + CACHE_LINE // 4, np.float32)
    skipped = -address(memory) % CACHE_LINE // 4
    return memory[skipped : skipped + n]
