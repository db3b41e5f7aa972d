"""Products of rows whose result for a row does not depend on the rows beside it.

A BLAS sums the products of a matrix in an order that depends on how many rows there are. What is kept for later
batches must not depend on which batch asked for it first: else the same text has scores that differ in the last bits
from one process to the next.
"""

from __future__ import annotations

import numpy as np


def row_by_row(rows: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """`rows @ weight.T`, float[n, n_out] of float[n, n_in] and float[n_out, n_in], as n products of the same shape."""
    return np.matmul(np.ascontiguousarray(weight), np.ascontiguousarray(rows)[:, :, None])[:, :, 0]
