"""Hiding gazetteers: how often, and what becomes of words that only a gazetteer lists."""

from __future__ import annotations

import numpy as np

from cige.data.gazetteer_regime import SHOWN, GazetteerRegime, hide_gazetteers
from cige.data.vocabulary import UNK, USER, EncodedLattice

N_WORDS = 4000


def lattice() -> EncodedLattice:
    """In turn: a word of the lexicon, one that two lists have too, one that only a list has, and a user word."""
    words = np.tile([7, 8, UNK, USER], N_WORDS // 4)
    groups = np.tile([1, 0b111, 0b100, 0], N_WORDS // 4)
    nothing = np.zeros(N_WORDS, np.int64)
    starts = np.arange(N_WORDS)
    return EncodedLattice(nothing[:1], nothing[:1], words, starts, starts + 2, nothing, groups, "text")


def test_nothing_is_hidden_by_default():
    given = lattice()
    assert hide_gazetteers(given, SHOWN, np.random.default_rng(0), n_gazetteers=2) is given


def test_hidden_words_are_ordinary_words_or_no_nodes():
    regime = GazetteerRegime(hide_word_prob=0.25)
    hidden = hide_gazetteers(lattice(), regime, np.random.default_rng(0), n_gazetteers=2)
    in_lexicon, only_listed = hidden.words == 8, hidden.words == UNK
    assert in_lexicon.sum() == N_WORDS // 4
    assert set(hidden.groups[in_lexicon]) == {1, 0b111}
    assert 0.7 < (hidden.groups[in_lexicon] == 0b111).mean() < 0.8
    assert 0.7 < only_listed.sum() / (N_WORDS // 4) < 0.8, "a word that only a list has is no node when it is hidden"
    assert set(hidden.groups[only_listed]) == {0b100}
    assert (hidden.words == USER).sum() == (hidden.words == 7).sum() == N_WORDS // 4
    assert len(hidden.starts) == len(hidden.ends) == len(hidden.counts) == len(hidden.word_labels) == len(hidden.words)


def test_a_list_is_hidden_in_the_whole_sentence():
    regime = GazetteerRegime(hide_list_prob=0.5)
    seen = set()
    for seed in range(40):
        hidden = hide_gazetteers(lattice(), regime, np.random.default_rng(seed), n_gazetteers=2)
        groups = {int(group) for group in hidden.groups[hidden.words == 8]}
        assert len(groups) == 1
        seen |= groups
        assert (hidden.words == UNK).any() == bool(groups.pop() & 0b100)
    assert seen == {0b001, 0b011, 0b101, 0b111}


def test_all_lists_may_be_hidden_together():
    regime = GazetteerRegime(hide_all_prob=1.0)
    hidden = hide_gazetteers(lattice(), regime, np.random.default_rng(0), n_gazetteers=2)
    assert set(hidden.groups.tolist()) == {0, 1}
    assert not (hidden.words == UNK).any()
