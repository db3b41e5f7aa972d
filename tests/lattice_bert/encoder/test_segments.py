"""Segments against the definition: places that no token spans part the lattice."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cige.lattice_bert.encoder.joint_vocabulary import JointVocabulary
from cige.lattice_bert.encoder.segments import segments, segments_of
from cige.lattice_bert.encoder.tokenizer import LatticeTokenizer

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"研究生活很充实"]


def test_the_example_of_the_paper():
    words = ["研究", "研究生", "生活", "充实"]
    lattice = LatticeTokenizer(JointVocabulary.build(PIECES, words)).tokenize("研究生活很充实")
    assert len(lattice.ids) == 11
    assert segments(lattice).tolist() == [0] * 7 + [1] + [2] * 3  # 研究生活 | 很 | 充实


def slow_segments(starts, ends) -> list[int]:
    """§2.4 of the paper: a place is a boundary iff no token begins before and ends after it."""
    boundaries = [
        place
        for place in range(min(starts) + 1, max(ends))
        if not any(start < place < end for start, end in zip(starts, ends, strict=True))
    ]
    return [sum(boundary <= start for boundary in boundaries) for start in starts]


@given(
    n_pieces=st.integers(1, 12),
    words=st.lists(st.tuples(st.integers(0, 11), st.integers(2, 5)), max_size=8),
    offset=st.integers(0, 9),
    order=st.randoms(use_true_random=False),
)
def test_equal_to_the_definition(n_pieces, words, offset, order):
    spans = {(k, k + 1) for k in range(n_pieces)}
    spans |= {(start, start + length) for start, length in words if start + length <= n_pieces}
    tokens = sorted(spans, key=lambda span: (span[1], span[1] - span[0]))
    starts, ends = (np.array(column, dtype=np.int32) + offset for column in zip(*tokens, strict=True))
    found = segments_of(starts, ends)
    assert found.dtype == np.int32
    assert found.tolist() == slow_segments(starts.tolist(), ends.tolist())
    assert (np.diff(found) >= 0).all() and (np.diff(found) <= 1).all()  # tokens of a segment stand together

    shuffled = list(range(len(tokens)))
    order.shuffle(shuffled)
    assert segments_of(starts[shuffled], ends[shuffled]).tolist() == found[shuffled].tolist()


@pytest.mark.parametrize("n", [0, 1])
def test_few_tokens(n):
    starts = np.arange(n, dtype=np.int32)
    assert segments_of(starts, starts + 1).tolist() == [0] * n
