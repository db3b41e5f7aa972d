"""How far a word list is believed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cige.distant.matching import TextWord
from cige.distant.trust import BANDS, MIN_WORDS, bands_of, trust_by_band, trust_of_shares, trust_of_words
from cige.lexicon.lexicon import Lexicon

N_BANDS = len(BANDS) + 2


def test_a_list_that_has_as_many_common_words_as_rare_ones_is_noise() -> None:
    trust = trust_of_shares([1000] * N_BANDS, [250] * N_BANDS)
    assert max(trust) < 0.05


def test_a_list_of_names_is_believed_where_it_has_more_than_its_noise() -> None:
    trust = trust_of_shares([1000] * N_BANDS, [50, 50, 50, 100, 100, 150, 150, 500])
    assert trust == sorted(trust) and trust[0] < 0.5 and trust[-1] > 0.9


def test_a_list_with_few_common_words_is_believed_throughout() -> None:
    assert min(trust_of_shares([1000] * N_BANDS, [8, 8, 8, 8, 8, 8, 8, 100])) > 0.9


def test_bands_with_few_words_say_nothing_of_the_noise() -> None:
    assert trust_of_shares([10] * N_BANDS, [9] * N_BANDS) == [0.95] * N_BANDS


def test_a_band_with_just_enough_words_tells_the_noise() -> None:
    """A later band with a smaller share lowers the noise, if it has enough words."""
    shares = [0.5, 0.2, *[0.5] * (N_BANDS - 2)]
    enough, plenty = (
        trust_of_shares([n] * N_BANDS, [int(n * share) for share in shares]) for n in (MIN_WORDS, 10 * MIN_WORDS)
    )
    assert enough == plenty and enough[2] > enough[0]
    half = MIN_WORDS // 2
    few = trust_of_shares([MIN_WORDS, MIN_WORDS - 1, *[MIN_WORDS] * (N_BANDS - 2)], [half, 1, *[half] * (N_BANDS - 2)])
    assert few[2] == few[0]


@given(st.lists(st.tuples(st.integers(0, 300), st.floats(0, 1)), min_size=N_BANDS, max_size=N_BANDS))
def test_trust_is_a_probability(bands: list[tuple[int, float]]) -> None:
    trust = trust_of_shares([n for n, _ in bands], [int(n * share) for n, share in bands])
    assert all(0 <= p <= 0.95 for p in trust)


def test_different_words_count_once() -> None:
    words = [TextWord(0, 2, f"w{k}", ("P",) if k % 2 else ()) for k in range(100)] + [TextWord(0, 2, "w0")] * 500
    trust = trust_by_band(words, "P", lambda word: 0)
    assert trust[0] == pytest.approx(trust_of_shares([100] + [0] * 7, [50] + [0] * 7)[0])


def test_bands_follow_counts_or_the_order_of_words() -> None:
    words = [f"词{k}" for k in range(400)]
    band = bands_of(Lexicon.from_words(words))
    assert (band(words[0]), band(words[299]), band(words[300]), band("没有")) == (0, 0, 1, N_BANDS - 1)
    band = bands_of(Lexicon.from_words(words, counts=range(1, 401)))
    assert (band(words[0]), band(words[399])) == (1, 0)


def test_what_a_tagger_found_moves_trust() -> None:
    trust = trust_of_words({"新款": 98, "飞利浦": 8, "罕": 1}, {"飞利浦": 8}, {"新款": 0.5, "飞利浦": 0.5, "罕": 0.5})
    assert trust["新款"] == pytest.approx(0.01) and trust["飞利浦"] == pytest.approx(0.9)
    assert trust["罕"] == pytest.approx(1 / 3)
