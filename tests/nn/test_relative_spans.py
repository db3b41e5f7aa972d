"""Every pair finds the row of its own four distances."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from cige.nn.relative_spans import relative_spans

node = st.tuples(st.integers(0, 40), st.integers(0, 12))


@given(st.lists(node, min_size=1, max_size=12))
def test_rows_hold_the_four_distances_of_their_pair(nodes):
    head = torch.tensor([[h for h, _ in nodes]])
    tail = torch.tensor([[h + reach for h, reach in nodes]])
    spans = relative_spans(head, tail)
    row = spans.index[0].long()
    h, t = head[0], tail[0]
    assert torch.equal(spans.distance("hh")[row], h[:, None] - h[None])
    assert torch.equal(spans.distance("ht")[row], h[:, None] - t[None])
    assert torch.equal(spans.distance("th")[row], t[:, None] - h[None])
    assert torch.equal(spans.distance("tt")[row], t[:, None] - t[None])


def test_rows_are_distinct_and_few():
    head = torch.arange(50).expand(4, 50)
    spans = relative_spans(head, head)
    assert len(spans.head_distance) == 99  # -49 .. 49, once each for all four sentences
    assert spans.index.dtype == torch.int32
