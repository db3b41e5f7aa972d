"""What is cut out of a shard, and the two texts in it that may be asked for their order."""

from __future__ import annotations

import numpy as np
from generated_shards import COMMA, corpora, plain, shard_of, tokens_within
from hypothesis import given
from hypothesis import strategies as st

from cige.lattice_bert.pretraining.passage import Block, Passage, find_block
from cige.lattice_bert.pretraining.shards import Shard


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


def block_of(shard: Shard, start: int, end: int, *, seed: int = 0) -> Block | None:
    return find_block(Passage(shard, start, end), clause_ends=(COMMA,), rng=np.random.default_rng(seed))


def middles(shard: Shard, start: int, end: int) -> dict[tuple[int, int], list[int]]:
    found = [block_of(shard, start, end, seed=seed) for seed in range(60)]
    assert None not in found
    return {
        span: sorted({b.middle for b in found if (b.start, b.end) == span})
        for span in {(b.start, b.end) for b in found}
    }


def test_whole_lines_of_one_document() -> None:
    shard = plain([5, 5, 5, 5], [5])
    assert middles(shard, 0, 20) == {(0, 20): [5, 10, 15]}
    assert middles(shard, 2, 18) == {(5, 15): [10]}  # what is left of cut lines stays where it is
    assert middles(shard, 2, 25) == {(5, 20): [10, 15]}  # and so does the next document
    assert block_of(shard, 7, 18) is None and block_of(shard, 13, 25) is None  # one whole line of each document


def test_the_document_with_most_text_in_whole_lines() -> None:
    shard = plain([5, 5, 5], [20, 10], [3, 3, 3])
    assert middles(shard, 0, 54) == {(15, 45): [35]}
    assert middles(shard, 0, 44) == {(0, 15): [5, 10]}


def test_clauses_where_lines_are_too_long() -> None:
    shard = shard_of([[(30, []), (30, [])], [(8, []), (8, [])]], commas={4, 9, 19, 33, 61})
    assert middles(shard, 0, 40) == {(5, 34): [10, 20]}
    assert middles(shard, 0, 76) == {(0, 60): [30]}
    assert block_of(shard, 8, 32) is None  # two clause ends
    assert middles(shard, 50, 76) == {(60, 76): [68]}


@given(corpora, st.data())
def test_texts_of_a_block_are_of_one_document(documents, data) -> None:
    shard = shard_of(documents, commas={k for k in range(400) if k % 5 == 0})
    n = len(shard.word_starts)
    start = data.draw(st.integers(0, n - 1))
    end = data.draw(st.integers(start + 1, n))
    block = block_of(shard, start, end, seed=data.draw(st.integers(0, 9)))
    edges = shard.line_pieces[shard.document_lines].tolist()
    lines = shard.line_pieces.tolist()
    two_lines = any(
        start <= lines[k] and lines[k + 2] <= end and lines[k + 1] not in edges for k in range(len(lines) - 2)
    )
    if block is None:
        assert not two_lines
        return
    assert start <= block.start < block.middle < block.end <= end
    assert not any(block.start < edge < block.end for edge in edges)
    for place in (block.start, block.middle, block.end):
        assert place in lines if two_lines else (place - 1) % 5 == 0
