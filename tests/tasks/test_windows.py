import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cige.tasks.windows import best_span, windows


def test_windows_of_the_paper():
    assert windows(600, 500) == [(0, 500), (128, 600)]
    assert windows(500, 500) == [(0, 500)]
    assert windows(10, 4, stride=128) == [(0, 4), (4, 8), (8, 10)]  # a stride beyond the size would leave pieces out
    assert windows(0, 4) == []
    with pytest.raises(ValueError, match="expected 1 or more"):
        windows(3, 0)


@given(st.integers(0, 300), st.integers(1, 60), st.integers(1, 80))
def test_every_piece_is_in_a_window(n_pieces, size, stride):
    found = windows(n_pieces, size, stride=stride)
    assert set(range(n_pieces)) == {k for start, end in found for k in range(start, end)}
    assert all(0 < end - start <= size for start, end in found)
    assert [start for start, _ in found] == [k * min(stride, size) for k in range(len(found))]
    assert not found or found[-1][1] == n_pieces


scores = st.lists(st.sampled_from([-3.0, -1.0, 0.0, 0.5, 2.0]), min_size=1, max_size=9)


@given(scores, st.data(), st.integers(1, 6))
def test_best_span_against_all_spans(starts, data, max_length):
    ends = data.draw(st.lists(st.sampled_from([-2.0, 0.0, 1.0]), min_size=len(starts), max_size=len(starts)))
    found = best_span(np.array(starts), np.array(ends), max_length=max_length)
    every = [
        (starts[i] + ends[j], i, j) for i in range(len(starts)) for j in range(i, min(len(starts), i + max_length))
    ]
    assert found.score == max(score for score, _, _ in every)
    assert (found.score, found.start, found.end) in every
