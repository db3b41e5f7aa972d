"""How often an epoch reads each of several corpora."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cige.training.dataset import SourceMix

sources = st.lists(st.tuples(st.integers(1, 30), st.floats(0, 3.5)), min_size=1, max_size=4)


@given(sources, st.integers(0, 5), st.integers(0, 3))
def test_an_epoch_reads_each_corpus_as_often_as_its_weight_says(sizes, epoch, seed):
    counts, weights = zip(*sizes, strict=True)
    mix = SourceMix(counts, weights, seed=seed)
    found = mix.sentences(epoch)
    bounds = np.cumsum([0, *counts])
    for k, (n, weight) in enumerate(sizes):
        own = found[(found >= bounds[k]) & (found < bounds[k + 1])]
        assert len(own) == round(n * weight)
        times = Counter(own.tolist())
        assert max(times.values(), default=0) - min([times[i] for i in range(bounds[k], bounds[k + 1])]) <= 2
    assert np.array_equal(found, SourceMix(counts, weights, seed=seed).sentences(epoch)), "a function of (seed, epoch)"


@given(st.integers(1, 30), st.floats(0.05, 2.5), st.integers(1, 8))
def test_epochs_go_on_where_the_last_one_stopped(n, weight, n_epochs):
    mix = SourceMix([n], [weight], seed=1)
    if round(n * weight) == n:
        return
    times = Counter(np.concatenate([mix.sentences(epoch) for epoch in range(n_epochs)]).tolist())
    assert max(times.values(), default=0) - min(times[i] for i in range(n)) <= 1


def test_a_whole_corpus_is_read_in_order():
    assert SourceMix([3, 2], [1, 1], seed=5).sentences(2).tolist() == [0, 1, 2, 3, 4]
