"""Which two texts are asked for their order, and that nothing but what they say gives it away."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from generated_shards import COMMA, corpora, plain, shard_of
from hypothesis import given
from hypothesis import strategies as st

from cige.lattice_bert.pretraining.instances import NO_LABEL, make_parts
from cige.lattice_bert.pretraining.packing import Packs, Room
from cige.lattice_bert.pretraining.passage import Block, Passage, find_block
from cige.lattice_bert.pretraining.shards import Shard


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


def parts_of(shard: Shard, start: int, end: int, *, seed: int, task: str = "order"):
    packs = Packs(*(np.array([value]) for value in (start, end, 0, False)))
    return make_parts(
        [shard],
        [packs],
        shard=0,
        pack=0,
        room=Room(200, 400),
        task=task,
        clause_ends=(COMMA,),
        rng=np.random.default_rng(seed),
    )


def pieces(part) -> list[int]:
    """Places in the shard of the pieces of a part of `plain` text."""
    return (part.ids[part.lengths == 1] - 1000).tolist()


@pytest.mark.parametrize(("start", "end"), [(0, 20), (2, 20), (0, 18), (2, 18), (2, 33), (20, 40)])
def test_both_orders_look_alike_at_every_edge(start: int, end: int) -> None:
    """Where the parts begin and end in the middle of a line, they do so whatever their order is."""
    shard = plain([4, 6, 5, 5], [5, 5, 4, 6])
    lines = set(shard.line_pieces.tolist())
    shapes: dict[int, set[tuple[bool, ...]]] = {0: set(), 1: set()}
    texts: dict[int, Counter] = {0: Counter(), 1: Counter()}
    for seed in range(200):
        parts, label = parts_of(shard, start, end, seed=seed)
        found = [pieces(part) for part in parts]
        assert sorted(found[0] + found[1]) == list(range(start, end))
        texts[label][found[0][0], found[1][-1]] += 1
        shapes[label].add(tuple(place in lines for text in found for place in (text[0], text[-1] + 1)))
    assert shapes[0] == shapes[1] and len(shapes[0]) == 1
    if start not in lines and end not in lines:
        assert texts[0].keys() == texts[1].keys() == {(start, end - 1)}


def test_swapped_parts_by_hand() -> None:
    shard = plain([5, 5, 5, 5], [5])
    found = {label: parts for parts, label in (parts_of(shard, 3, 22, seed=seed) for seed in range(40))}
    assert set(found) == {0, 1}
    first = pieces(found[1][0])
    middle = first[2]
    assert first == [3, 4, *range(middle, 20)] and pieces(found[1][1]) == [*range(5, middle), 20, 21]


def test_without_two_texts_the_parts_meet_where_a_document_ends() -> None:
    shard = plain([5], [5], [5])
    for seed in range(10):
        parts, label = parts_of(shard, 1, 14, seed=seed)
        assert label == NO_LABEL and [len(pieces(part)) for part in parts] in ([4, 9], [9, 4])
        assert parts_of(shard, 1, 14, seed=seed, task="three_way")[1] == 0
        parts, label = parts_of(shard, 1, 5, seed=seed, task="three_way")
        assert label == NO_LABEL and [pieces(part) for part in parts] == [[1, 2, 3, 4]]
