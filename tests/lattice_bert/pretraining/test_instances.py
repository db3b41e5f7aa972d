"""The two texts that are asked for their order: nothing but what they say gives it away."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from generated_shards import COMMA, plain

from cige.lattice_bert.pretraining.instances import NO_LABEL, make_parts
from cige.lattice_bert.pretraining.packing import Packs, Room
from cige.lattice_bert.pretraining.shards import Shard


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
