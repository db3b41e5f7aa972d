"""Greedy coverage: what was said before counts less."""

from math import log1p

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cige.suggest.coverage import greedy

FEATURES = st.lists(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 5).map(float), max_size=4), min_size=1, max_size=8
)


def plain_greedy(features, costs, scale, covered):
    """Every gain computed anew for each choice."""
    have, left, order = dict(covered), list(range(len(features))), []
    while left:

        def gain(k):
            return sum(scale * log1p(x / (scale + have.get(f, 0.0))) for f, x in features[k].items()) / costs[k]

        best = max(left, key=lambda k: (gain(k), -k))
        left.remove(best)
        order.append(best)
        for f, x in features[best].items():
            have[f] = have.get(f, 0.0) + x
    return order


@given(FEATURES, st.sampled_from([0.1, 1.0, 4.0]), st.booleans(), st.dictionaries(st.sampled_from("abc"), st.just(2.0)))
def test_lazy_gains_give_the_same_order_as_plain_ones(features, scale, by_size, covered):
    costs = [1.0 + len(own) if by_size else 1.0 for own in features]
    expected = plain_greedy(features, costs, scale, covered)
    assert list(greedy(features, costs=costs, scale=scale, covered=covered)) == expected


def test_a_second_text_of_the_same_kind_waits():
    features = [{"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 0.9}, {"c": 1.0}]
    assert list(greedy(features, costs=[1, 1, 1], scale=0.1)) == [0, 2, 1]
    assert list(greedy(features, costs=[1, 1, 1], scale=0.1, covered={"a": 9.0, "b": 9.0})) == [2, 0, 1]


def test_costs_divide_gains():
    features = [{"a": 2.0}, {"b": 1.5}]
    assert list(greedy(features, costs=[1, 1], scale=100.0)) == [0, 1]
    assert list(greedy(features, costs=[4, 1], scale=100.0)) == [1, 0]


def test_refused_texts_add_nothing():
    features = [{"a": 1.0}, {"a": 0.9}, {"b": 0.5}]
    asked = []

    def accepts(number):
        asked.append(number)
        return number != 0

    assert list(greedy(features, costs=[1, 1, 1], scale=0.1, accepts=accepts)) == [1, 2]
    assert sorted(asked) == [0, 1, 2]


@pytest.mark.parametrize("features", [[], [{}], [{}, {"a": 1.0}]])
def test_texts_without_features_come_last(features):
    assert list(greedy(features, costs=[1.0] * len(features), scale=1.0)) == sorted(
        range(len(features)), key=lambda k: not features[k]
    )
