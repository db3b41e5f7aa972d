"""The angles of rotary position embeddings (RoFormer, Su et al. 2021, §3.2), for PyTorch and NumPy."""

from __future__ import annotations

import numpy as np

BASE = 10_000.0


def rotary_angles(n: int, width: int) -> np.ndarray:
    """float64[n, D / 2]: how far, in radians, each pair of numbers of a vector of width D turns at each position."""
    return np.arange(n)[:, None] * BASE ** -(np.arange(0, width, 2) / width)
