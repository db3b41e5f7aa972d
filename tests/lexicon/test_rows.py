"""Sorted rows: the C and the NumPy way agree."""

import random

import numpy as np
import pytest

from cige.lexicon import rows

WAYS = [rows.numpy_rows]
if rows.sorted_rows is rows.native_rows:
    WAYS.append(rows.native_rows)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 50, 5000])
def test_rows_are_sorted_int32_and_writable(way, n):
    chance = random.Random(n)
    found = [(chance.randrange(50), chance.randrange(50), chance.randrange(2**31)) for _ in range(n)]
    expected = np.array(sorted(found), dtype=np.int32).reshape(-1, 3)
    result = way(found)
    assert result.dtype == np.int32 and result.shape == (n, 3)
    assert (result == expected).all()
    result[:, :2] += 1


@pytest.mark.skipif(len(WAYS) == 1, reason="built without a C compiler")
@pytest.mark.parametrize("bad", [((0, 1, 2),), [(0, 1)], [("a", "b", "c")], [[0, 1, 2]]])
def test_the_c_way_raises_on_anything_else(bad):
    with pytest.raises((TypeError, IndexError, SystemError)):
        rows.native_rows(bad)
