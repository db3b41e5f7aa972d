"""Products that are made of the weights once: alike whatever else is computed with them, and in one thread.

A BLAS sums the products of a matrix in an order that depends on how many rows there are. What is kept for later
batches must not depend on which batch asked for it first: else the same text has scores that differ in the last bits
from one process to the next.

These products take milliseconds. The threads that a BLAS wakes for one wait busily for each other and cost more
processor time than the product itself, much more where other programs compute too; so it gets small ones.
"""

from __future__ import annotations

import numpy as np

# Multiplications from which OpenBLAS uses several threads, for a vector and for a matrix.
_OF_VECTOR, _OF_MATRIX = 9216, 1 << 18


def row_by_row(rows: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """`rows @ weight.T`, float[n, n_out] of float[n, n_in] and float[n_out, n_in]; a row's result is its own alone."""
    weight, vectors = np.ascontiguousarray(weight), np.ascontiguousarray(rows)[:, :, None]
    n_out = max(1, (_OF_VECTOR - 1) // weight.shape[1])
    parts = [np.matmul(weight[k : k + n_out], vectors)[:, :, 0] for k in range(0, len(weight), n_out)]
    return np.concatenate(parts, 1)


def in_one_thread(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`a @ b`, float[m, n] of float[m, k] and float[k, n]."""
    n_columns = max(1, _OF_MATRIX // a.size)
    return np.concatenate([a @ b[:, k : k + n_columns] for k in range(0, b.shape[1], n_columns)], 1)
