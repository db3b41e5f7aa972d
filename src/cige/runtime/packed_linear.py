"""PackedLinear: a linear layer in the order in which the compiled product reads its weights."""

from __future__ import annotations

import ctypes

import numpy as np

from cige.runtime.native import address

CACHE_LINE = 64


class PackedLinear:
    """Weights in panels.

    Args:
        weight: float[n_out, n_in].
        bias: float[n_out], or None.
        n_parts: how many equal parts the outputs have; each is padded to whole panels by itself.

    Attributes:
        n_out: numbers of an output row, padding included.
        fields: n_in, n_panels and the addresses of panels and bias, as native/product.h has them.
    """

    def __init__(self, library: ctypes.CDLL, weight: np.ndarray, bias: np.ndarray | None = None, *, n_parts: int = 1):
        panel = library.panel_width()
        n_in, width = weight.shape[1], len(weight) // n_parts
        padded_width = -(-width // panel) * panel
        weight = _parts_padded(weight, n_parts, padded_width)
        bias = None if bias is None else _parts_padded(bias, n_parts, padded_width)
        self.n_in, self.n_out = n_in, n_parts * padded_width
        self._panels, self._bias = aligned(self.n_out * n_in), aligned(self.n_out)
        sizes = np.array([self.n_out, n_in], np.int64)
        given = None if bias is None else address(bias)
        library.pack_weights(address(sizes), address(weight), given, address(self._panels), address(self._bias))
        self.fields = [n_in, self.n_out // panel, address(self._panels), address(self._bias)]


def _parts_padded(x: np.ndarray, n_parts: int, width: int) -> np.ndarray:
    """float32 with each of the equal parts of the first axis filled up with zeros to `width`."""
    parts = np.split(x, n_parts)
    padded = np.zeros((n_parts, width, *x.shape[1:]), np.float32)
    for k, part in enumerate(parts):
        padded[k, : len(part)] = part
    return padded.reshape(-1, *x.shape[1:])


def aligned(n: int) -> np.ndarray:
    """float32[n] of zeros whose first number stands at the begin of a cache line."""
    memory = np.zeros(n + CACHE_LINE // 4, np.float32)
    skipped = -address(memory) % CACHE_LINE // 4
    return memory[skipped : skipped + n]
