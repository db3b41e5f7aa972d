import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cige.lattice_bert.tasks.reading import best_span

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
