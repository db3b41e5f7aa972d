"""What is cut out of a shard holds the tokens that lie wholly within it, at their new places."""

from __future__ import annotations

import numpy as np
from generated_shards import COMMA, corpora, plain, shard_of, tokens_within
from hypothesis import given
from hypothesis import strategies as st

from cige.lattice_bert.pretraining.passage import Passage


@given(corpora, st.data())
def test_parts_are_their_tokens(documents, data) -> None:
    """Every stretch of a passage, against a search through all tokens of the shard."""
    shard = shard_of(documents)
    n = len(shard.word_starts)
    start = data.draw(st.integers(0, n - 1))
    end = data.draw(st.integers(start + 1, n))
    places = sorted(data.draw(st.lists(st.integers(start, end), min_size=2, max_size=2)))
    first, second = (start, places[0]), (places[1], end)
    if first[0] == first[1] and second[0] == second[1]:
        first = (start, end)
    part = Passage(shard, start, end).part(second, first)
    shift, expected, word_starts = 0, [], []
    for a, b in (second, first):
        expected += [(i, s - a + shift, n) for i, s, n in tokens_within(shard, a, b)]
        word_starts += [k == 0 or (a + k) % 3 == 0 for k in range(b - a)]
        shift += b - a
    assert list(zip(part.ids, part.starts, part.lengths, strict=True)) == expected
    assert part.word_starts.tolist() == word_starts


@given(corpora, st.data())
def test_ends_of_lines_and_documents(documents, data) -> None:
    shard = shard_of(documents)
    n = len(shard.word_starts)
    start = data.draw(st.integers(0, n - 1))
    end = data.draw(st.integers(start + 1, n))
    passage = Passage(shard, start, end)
    edges = shard.line_pieces[shard.document_lines].tolist()
    assert passage.document_ends == [place for place in edges if start < place < end]
    inner = [place for place in shard.line_pieces.tolist() if start < place < end]
    assert [place for place in passage.line_ends if start < place < end] == inner
    assert passage.line_ends[0] <= start < passage.line_ends[1] and passage.line_ends[-2] < end <= passage.line_ends[-1]


def test_cutting_out_leaves_the_shard_as_it_was() -> None:
    shard = plain([9, 9])
    before = shard.word_starts.copy()
    assert Passage(shard, 4, 17).part((4, 17)).word_starts[0] and not before[4]
    assert np.array_equal(shard.word_starts, before)


def test_places_after_commas() -> None:
    shard = shard_of([[(10, []), (10, [])]], commas={0, 3, 9, 12, 15})
    assert Passage(shard, 1, 16).places_after((COMMA,)) == [4, 10, 13, 16]
    assert Passage(shard, 0, 15).places_after((COMMA,)) == [1, 4, 10, 13]
    assert Passage(shard, 0, 20).places_after(()) == []
