"""Products whose rows do not affect each other, in pieces for which a BLAS uses one thread."""

from __future__ import annotations

import numpy as np
import pytest

from cige.runtime import row_products
from cige.runtime.row_products import in_one_thread, row_by_row


@pytest.mark.parametrize(("n_out", "n_in"), [(300, 96), (300, 50), (3, 9215), (3, 9216), (2, 20_000), (1, 7)])
def test_no_row_affects_another_and_every_piece_is_small(monkeypatch, n_out, n_in):
    rng = np.random.default_rng(0)
    rows, weight = (rng.normal(size=(n, n_in)).astype(np.float32) for n in (5, n_out))
    pieces = []

    def product(a, b):
        pieces.append(a.shape)
        return np.einsum("oi,ric->roc", a, b)

    expected = row_by_row(rows, weight)
    np.testing.assert_allclose(expected, rows @ weight.T, rtol=1e-4, atol=1e-3)
    assert all((row_by_row(rows[k : k + 1], weight) == expected[k]).all() for k in range(5))
    monkeypatch.setattr(row_products.np, "matmul", product)
    row_by_row(rows, weight)
    assert sum(size for size, _ in pieces) == n_out
    assert all(size * n_in < row_products._OF_VECTOR or size == 1 for size, _ in pieces)


@pytest.mark.parametrize(("m", "n"), [(40, 50), (500, 20), (3, 2000), (1000, 1)])  # divided by columns or by rows
def test_products_of_matrices_are_those_of_their_parts(m, n):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(m, 300)), rng.normal(size=(300, n))
    np.testing.assert_allclose(in_one_thread(a, b), a @ b, rtol=1e-9)
