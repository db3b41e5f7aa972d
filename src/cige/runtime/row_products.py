"""Products for cached tables: their results do not depend on the batch, and they use a single thread.

In a BLAS, the order of summation depends on the number of rows. Cached values must not depend on the batch for which
they were computed; otherwise, the scores of a text would differ in the last bits between processes.

These products take milliseconds. The threads that a BLAS starts for a product wait for each other actively, which costs
more processor time than the product itself, especially if other programs are running. Therefore, the products are split
into small ones, for which it uses one thread.
"""

from __future__ import annotations

import numpy as np

# The number of multiplications from which OpenBLAS uses several threads, for a vector and for a matrix.
_OF_VECTOR, _OF_MATRIX = 9216, 1 << 18


def row_by_row(rows: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """`rows @ weight.T`, float[n, n_out] of float[n, n_in] and float[n_out, n_in]; rows do not affect each other."""
    weight, vectors = np.ascontiguousarray(weight), np.ascontiguousarray(rows)[:, :, None]
    n_out = max(1, (_OF_VECTOR - 1) // weight.shape[1])
    parts = [np.matmul(weight[k : k + n_out], vectors)[:, :, 0] for k in range(0, len(weight), n_out)]
    return np.concatenate(parts, 1)


def in_one_thread(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`a @ b`, float[m, n] of float[m, k] and float[k, n]."""
    if a.size > b.size:  # fewer, larger products
        n_rows = max(1, _OF_MATRIX // b.size)
        return np.concatenate([a[k : k + n_rows] @ b for k in range(0, len(a), n_rows)])
    n_columns = max(1, _OF_MATRIX // a.size)
    return np.concatenate([a @ b[:, k : k + n_columns] for k in range(0, b.shape[1], n_columns)], 1)
