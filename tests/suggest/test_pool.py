"""The best of any number of texts, in bounded memory."""

import json
import random

from hypothesis import given
from hypothesis import strategies as st

from cige.suggest.doubts import Doubt
from cige.suggest.pool import Candidate, Pool


def candidate(key: int, line: int = 1) -> Candidate:
    return Candidate(f"文本{key}", key, line, (Doubt(0, 1, 0.25),))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 30)), max_size=60), st.integers(1, 10))
def test_it_holds_what_sorting_everything_would(offers, size):
    pool = Pool(size)
    worth_of = {}
    for worth, key in offers:
        worth_of.setdefault(key, worth)  # a text has one worth
        pool.offer(worth_of[key], key, candidate(key))
        assert len(pool) <= size
    best = sorted(((worth, key) for key, worth in worth_of.items()), reverse=True)[:size]
    assert [(worth, tie) for worth, tie, _ in pool.entries()] == best
    assert [c.key for c in pool.best()] == [key for _, key in best]


def test_the_order_of_the_texts_does_not_count():
    offers = [(key % 7, key * 37 % 101, candidate(key)) for key in range(100)]
    pools = []
    for seed in (1, 2):
        random.Random(seed).shuffle(offers)
        pools.append(Pool(20))
        for offer in offers:
            pools[-1].offer(*offer)
    assert pools[0].entries() == pools[1].entries()


def test_of_equal_texts_the_first_stays():
    pool = Pool(3)
    pool.offer(1.0, 5, candidate(5, line=1))
    pool.offer(1.0, 5, candidate(5, line=9))
    assert [c.line for c in pool.best()] == [1]


def test_candidates_and_entries_survive_json():
    pool = Pool(4)
    for key in range(9):
        pool.offer(key / 3, key, candidate(key, key))
    kept = json.loads(json.dumps([[worth, tie, *c.to_list()] for worth, tie, c in pool.entries()]))
    assert Pool(4, ((w, t, Candidate.from_list(rest)) for w, t, *rest in kept)).entries() == pool.entries()
