"""Instances are filled with consecutive text: every piece once, none over its limits, cut only where it has to be."""

from __future__ import annotations

import numpy as np
import pytest
from generated_shards import corpora, plain, shard_of, tokens_within
from hypothesis import given
from hypothesis import strategies as st

from cige.lattice_bert.pretraining.packing import MIN_FILL, Packs, Reach, Room, pack_shard
from cige.lattice_bert.pretraining.shards import Shard


def packed(shard: Shard, room: Room, *, short_prob: float = 0.0, other_prob: float = 0.0, seed: int = 0) -> Packs:
    rng = np.random.default_rng(seed)
    return pack_shard(shard, room, short_prob=short_prob, other_prob=other_prob, rng=rng)


@given(corpora, st.integers(8, 60), st.integers(0, 40), st.sampled_from([0.0, 0.3]), st.sampled_from([0.0, 0.4]))
def test_every_piece_is_in_one_instance_within_its_limits(documents, n_characters, more, short_prob, other_prob):
    shard, room = shard_of(documents), Room(n_characters, n_characters + more)
    packs = packed(shard, room, short_prob=short_prob, other_prob=other_prob)
    assert packs.starts[0] == 0 and packs.ends[-1] == len(shard.word_starts)
    assert (packs.starts[1:] == packs.ends[:-1]).all() and (packs.starts < packs.ends).all()
    assert (packs.ends - packs.starts <= n_characters - 3).all()
    for start, end, n_tokens in zip(packs.starts.tolist(), packs.ends.tolist(), packs.n_tokens.tolist(), strict=True):
        assert n_tokens == len(tokens_within(shard, start, end)) <= n_characters + more - 3
    assert other_prob or not packs.wants_other.any()


@given(corpora, st.integers(8, 60), st.integers(0, 40))
def test_without_chance_instances_are_full(documents, n_characters, more) -> None:
    """One more piece would be too much, or it ends with a line and little room is left."""
    shard, room = shard_of(documents), Room(n_characters, n_characters + more)
    packs = packed(shard, room)
    for start, end in zip(packs.starts[:-1].tolist(), packs.ends[:-1].tolist(), strict=True):
        furthest = end
        while furthest - start < room.n_text_characters and furthest < len(shard.word_starts):
            if len(tokens_within(shard, start, furthest + 1)) > room.n_text_tokens:
                break
            furthest += 1
        assert furthest == end or (end in shard.line_pieces and end - start >= MIN_FILL * (furthest - start))


@given(corpora, st.data())
def test_tokens_of_any_stretch_are_counted(documents, data) -> None:
    shard = shard_of(documents)
    n_lines = len(shard.line_pieces) - 1
    first = data.draw(st.integers(0, n_lines - 1))
    last = data.draw(st.integers(first + 1, n_lines))
    reach = Reach(shard, (first, last))
    places = st.integers(int(shard.line_pieces[first]), int(shard.line_pieces[last]))
    start, end = sorted((data.draw(places), data.draw(places)))
    assert reach.n_tokens(start, end) == len(tokens_within(shard, start, end))


def test_filling_by_hand() -> None:
    shard = plain([5, 5, 5], [5, 30])
    # Ten characters: two lines, then on into the next document. The line of thirty is cut.
    assert packed(shard, Room(13, 100)).ends.tolist() == [10, 20, 30, 40, 50]
    # Twelve: the second line ends at ten, 83% of the room, so the third is cut after two. From there a line ends at 20,
    # which leaves too much room, and so on; 50 is the end.
    assert packed(shard, Room(15, 100)).ends.tolist() == [12, 24, 36, 48, 50]
    # Eleven: ten are 91%.
    assert packed(shard, Room(14, 100)).ends.tolist() == [10, 20, 31, 42, 50]


def test_the_limit_on_tokens_cuts_too() -> None:
    shard = shard_of([[(10, [(k, 2) for k in range(9)])]])  # every two neighbours are a word
    # n pieces in a row hold n - 1 words: five pieces have nine tokens, and the word over the cut is in neither.
    assert packed(shard, Room(20, 12)).ends.tolist() == [5, 10]
    assert packed(shard, Room(20, 12)).n_tokens.tolist() == [9, 9]


def test_short_instances_are_as_frequent_as_asked() -> None:
    shard = plain([1] * 50_000)
    sizes = np.diff([0, *packed(shard, Room(53, 100), short_prob=0.2).ends[:-1]])
    assert sizes.max() == 50 and abs((sizes < 50).mean() - 0.2 * 48 / 49) < 0.03 and sizes.min() == 2
    assert abs(sizes[sizes < 50].mean() - 25.5) < 2


def test_short_instances_end_with_the_line_that_reaches_their_length() -> None:
    shard = plain([7] * 5000)
    ends = packed(shard, Room(53, 100), short_prob=1.0).ends
    assert set(np.diff([0, *ends[:-1]]).tolist()) == set(range(7, 50, 7))
    assert packed(plain([7] * 5000), Room(9, 100), short_prob=1.0).ends[0] == 6  # no line is that short


def test_places_for_other_documents() -> None:
    shard = plain([5] * 30_000, [50])
    packs = packed(shard, Room(53, 100), other_prob=1 / 3)
    sizes, wants = (packs.ends - packs.starts)[:-2], packs.wants_other[:-2]
    assert abs(wants.mean() - 1 / 3) < 0.03 and set(sizes[~wants].tolist()) == {50}
    assert set(sizes[wants].tolist()) == set(range(5, 50, 5))  # something is left for the other document
    assert not packs.wants_other[-1]  # one line alone


@pytest.mark.parametrize("seed", [0, 1])
def test_packing_is_a_function_of_the_seed(seed: int) -> None:
    shard = plain([5] * 400)
    a, b, c = (packed(shard, Room(60, 90), short_prob=0.5, seed=s) for s in (seed, seed, seed + 1))
    assert a.ends.tolist() == b.ends.tolist() != c.ends.tolist()
