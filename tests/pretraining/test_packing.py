"""Lines become instances: whole lines of one document, every line once, as many as fit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cige.pretraining.packing import Packs, Room, longest_line, pack_lines
from cige.pretraining.shards import Shard


def shard_of(documents: list[list[tuple[int, int]]]) -> Shard:
    """A shard whose lines have so many (pieces, tokens); their contents do not matter here."""
    lines = [line for document in documents for line in document]
    offsets = [
        np.concatenate([[0], np.cumsum(x)]).astype(np.int64) for x in ([p for p, _ in lines], [t for _, t in lines])
    ]
    n_tokens = int(offsets[1][-1])
    return Shard(
        ids=np.zeros(n_tokens, np.int32),
        starts=np.zeros(n_tokens, np.int32),
        lengths=np.ones(n_tokens, np.uint16),
        line_tokens=offsets[1],
        line_pieces=offsets[0],
        document_lines=np.concatenate([[0], np.cumsum([len(d) for d in documents])]).astype(np.int64),
        word_starts=np.ones(int(offsets[0][-1]), np.bool_),
    )


def packed(shard: Shard, room: Room, *, short_prob: float = 0.0, other_prob: float = 0.0, seed: int = 0) -> Packs:
    rng = np.random.default_rng(seed)
    return pack_lines(shard, room, short_prob=short_prob, other_prob=other_prob, rng=rng)


lines = st.tuples(st.integers(1, 20), st.integers(0, 15)).map(lambda x: (x[0], x[0] + x[1]))
corpora = st.lists(st.lists(lines, min_size=1, max_size=12), min_size=1, max_size=8)


@given(corpora, st.integers(8, 60), st.integers(0, 40), st.sampled_from([0.0, 0.3]), st.sampled_from([0.0, 0.4]))
def test_every_line_is_in_one_instance_of_its_document(documents, n_characters, more, short_prob, other_prob) -> None:
    shard, room = shard_of(documents), Room(n_characters, n_characters + more)
    packs = packed(shard, room, short_prob=short_prob, other_prob=other_prob)
    covered = [line for first, end in zip(packs.firsts, packs.ends, strict=True) for line in range(first, end)]
    assert covered == list(range(len(shard.line_tokens) - 1))
    edges = set(shard.document_lines.tolist())
    for first, end, n_tokens in zip(packs.firsts, packs.ends, packs.n_tokens, strict=True):
        assert not edges & set(range(first + 1, end))
        n_pieces = shard.line_pieces[end] - shard.line_pieces[first]
        assert n_tokens == shard.line_tokens[end] - shard.line_tokens[first]
        assert end == first + 1 or (n_pieces <= n_characters - 3 and n_tokens <= n_characters + more - 3)


@given(corpora, st.integers(8, 60))
def test_without_chance_instances_are_filled(documents, n_characters: int) -> None:
    shard, room = shard_of(documents), Room(n_characters, 1000)
    packs = packed(shard, room)
    for end in packs.ends[:-1]:
        if end not in shard.document_lines:
            first = packs.firsts[packs.ends == end][0]
            assert shard.line_pieces[end + 1] - shard.line_pieces[first] > n_characters - 3
    assert not packs.wants_other.any()


def test_filling_by_hand() -> None:
    shard = shard_of([[(5, 6), (5, 9), (5, 6)], [(5, 5)]])
    assert packed(shard, Room(13, 100)).ends.tolist() == [2, 3, 4]  # ten characters fit, fifteen do not
    assert packed(shard, Room(100, 17)).ends.tolist() == [1, 2, 3, 4]  # fourteen tokens: 6 + 9 do not fit
    assert packed(shard, Room(100, 100)).ends.tolist() == [3, 4]  # and never into the next document
    assert longest_line(shard) == Room(8, 12)


def test_short_instances_are_as_frequent_as_asked() -> None:
    shard = shard_of([[(1, 1)] * 50_000])
    packs = packed(shard, Room(53, 100), short_prob=0.2)
    sizes = packs.ends - packs.firsts
    assert sizes.max() == 50 and abs((sizes < 50).mean() - 0.2 * 48 / 49) < 0.03 and sizes.min() == 2


def test_places_for_other_documents() -> None:
    shard = shard_of([[(5, 5)] * 30_000, [(50, 50)]])
    packs = packed(shard, Room(53, 100), other_prob=1 / 3)
    sizes = (packs.ends - packs.firsts)[:-1]
    wants = packs.wants_other[:-1]
    assert abs(wants.mean() - 1 / 3) < 0.03 and set(sizes[~wants][:-1]) == {10}
    assert set(sizes[wants]) == set(range(1, 10))  # something is left for the other document, and for the next instance
    assert packs.wants_other[-1]  # one line alone


@pytest.mark.parametrize("seed", [0, 1])
def test_packing_is_a_function_of_the_seed(seed: int) -> None:
    shard = shard_of([[(5, 7)] * 400])
    a, b, c = (packed(shard, Room(60, 90), short_prob=0.5, seed=s) for s in (seed, seed, seed + 1))
    assert a.ends.tolist() == b.ends.tolist() != c.ends.tolist()
