"""Products of matrices in C, at every level and in every precision that this processor has."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from runtime_forms import LEVELS

from cige.runtime import native
from cige.runtime.native import address
from cige.runtime.packed_linear import PackedLinear, aligned
from cige.runtime.precision import BFLOAT16, FLOAT32, INT8, INT16, PRECISIONS, available, to_bfloat16, to_int8, to_int16

PLAIN, ADD, RELU, SPARSE = 0, 1, 2, 4


def with_precision(precision: str) -> list[str]:
    return [level for level in LEVELS if precision in available(native.load(level))]


SHAPES = [(1, 1, 1), (5, 3, 7), (12, 256, 16), (13, 257, 33), (35, 160, 480), (7, 600, 40), (60, 1025, 33)]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", [PLAIN, ADD, RELU])
def test_products(level, shape, mode):
    check_product(level, shape, mode, FLOAT32, lambda x: x, lambda weight: weight)


@pytest.mark.parametrize("level", with_precision(BFLOAT16))
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", [PLAIN, ADD, RELU])
def test_products_in_bfloat16(level, shape, mode):
    check_product(level, shape, mode, BFLOAT16, rounded, rounded)


@pytest.mark.parametrize("level", with_precision(INT8))
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", [PLAIN, ADD, RELU])
def test_products_in_int8(level, shape, mode):
    """Rows are rounded in parts of 512 numbers, each with a scale of its own."""

    def in_parts(x: np.ndarray) -> np.ndarray:
        return np.concatenate([widened(*to_int8(x[:, k : k + 512])) for k in range(0, x.shape[1], 512)], 1)

    check_product(level, shape, mode, INT8, in_parts, lambda weight: widened(*to_int8(weight)))


@pytest.mark.parametrize("level", with_precision(INT16))
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", [PLAIN, ADD, RELU])
def test_products_in_int16(level, shape, mode):
    def in_parts(x: np.ndarray) -> np.ndarray:
        return np.concatenate([widened(*to_int16(x[:, k : k + 512])) for k in range(0, x.shape[1], 512)], 1)

    check_product(level, shape, mode, INT16, in_parts, lambda weight: widened(*to_int16(weight)))


@pytest.mark.parametrize("share", [0, 0.02, 0.3, 0.9])
@pytest.mark.parametrize("mode", [PLAIN, ADD, RELU])
@pytest.mark.parametrize(("level", "precision"), [(level, p) for p in PRECISIONS for level in with_precision(p)])
def test_that_most_numbers_may_be_zero_changes_no_bit(level, precision, mode, share):
    """Whatever share of the numbers is not 0, for rows of one, two and three panels and of one and two parts."""
    rng, library = np.random.default_rng(3), native.load(level)
    for n_rows, n_in, n_out in ((1, 1, 1), (5, 33, 16), (27, 480, 40), (61, 700, 160)):
        weight, bias = rng.normal(size=(n_out, n_in)).astype(np.float32), rng.normal(size=n_out).astype(np.float32)
        packed = PackedLinear(library, weight, bias, precision=precision)
        x, start = aligned(n_rows * n_in), rng.normal(size=n_rows * packed.n_out).astype(np.float32)
        x[:] = rng.normal(size=x.shape) * (rng.random(x.shape) < share * rng.random(x.shape) * 2)
        x[rng.integers(len(x), size=3)] = np.inf, np.nan, 1e-45  # the factors of their rows are 0, NaN or infinite
        dense, sparse = aligned(len(start)), aligned(len(start))
        dense[:], sparse[:] = start, start
        library.one_product(packed.struct, address(x), n_rows, address(dense), mode)
        library.one_product(packed.struct, address(x), n_rows, address(sparse), mode | SPARSE)
        np.testing.assert_array_equal(sparse, dense)


@pytest.mark.parametrize(("level", "precision"), [(level, p) for p in (INT8, INT16) for level in with_precision(p)])
def test_no_sum_of_whole_numbers_overflows(level, precision):
    """All numbers are the highest of their rows, of either sign, in as many as are added without a pause."""
    library, n_in, n_out = native.load(level), 512, 48
    weight = np.ones((n_out, n_in), np.float32) * np.where(np.arange(n_out) % 2, 3, -3)[:, None].astype(np.float32)
    packed = PackedLinear(library, weight, None, precision=precision)
    x, y = aligned(5 * n_in), aligned(5 * packed.n_out)
    x.reshape(5, n_in)[:] = np.float32([2, -2, 2, -2, 2])[:, None]
    library.one_product(packed.struct, address(x), 5, address(y), PLAIN)
    expected = x.reshape(5, n_in).astype(np.float64) @ weight.T
    np.testing.assert_allclose(y.reshape(5, -1)[:, :n_out], expected, rtol=1e-6)


def check_product(level, shape, mode, precision, of_rows, of_weight):
    n_rows, n_in, n_out = shape
    rng, library = np.random.default_rng(sum(shape)), native.load(level)
    weight, bias = rng.normal(size=(n_out, n_in)).astype(np.float32), rng.normal(size=n_out).astype(np.float32)
    weight[0] = 0  # no scale is made of nothing
    packed = PackedLinear(library, weight, bias, precision=precision)
    x, y = aligned(n_rows * n_in), aligned(n_rows * packed.n_out)
    x[:], y[:] = rng.normal(size=x.shape), rng.normal(size=y.shape)
    rows = x.reshape(n_rows, n_in)
    rows[-1] = 0
    before, after = y.reshape(n_rows, -1)[:, :n_out].copy(), y.reshape(n_rows, -1)[:, :n_out]
    library.one_product(packed.struct, address(x), n_rows, address(y), mode)
    expected = of_rows(rows).astype(np.float64) @ of_weight(weight).T.astype(np.float64)
    expected = expected + before if mode == ADD else expected + bias
    np.testing.assert_allclose(after, np.maximum(expected, 0) if mode == RELU else expected, atol=2e-4)


def rounded(x: np.ndarray) -> np.ndarray:
    """Rounded to bfloat16 by PyTorch."""
    return torch.from_numpy(x).bfloat16().float().numpy()


def widened(whole: np.ndarray, scales: np.ndarray) -> np.ndarray:
    return whole * scales[:, None].astype(np.float64)


def test_rounding_to_bfloat16_is_that_of_pytorch():
    """Ties, both infinities, zeros of either sign and numbers that become infinite among them."""
    rng = np.random.default_rng(0)
    some = rng.integers(0, 2**32, 100_000, dtype=np.uint32).view(np.float32)
    ties = (rng.integers(0, 2**16, 1000, dtype=np.uint32) << 16 | 0x8000).view(np.float32)
    x = np.concatenate([some, ties, np.float32([0, -0.0, np.inf, -np.inf, np.finfo(np.float32).max])])
    x = x[~np.isnan(x)]
    np.testing.assert_array_equal(
        to_bfloat16(x), torch.from_numpy(x).bfloat16().view(torch.int16).numpy().view(np.uint16)
    )
