"""Simulated user words: shares as configured, gold entities never called false, and nothing else touched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cige.data.sentence import Span
from cige.data.user_words import UserWordRegime, simulate_user_words
from cige.data.vocabulary import UNK, USER, EncodedLattice

PLAIN = UserWordRegime(sentence_prob=0.0, entity_prob=0.0, n_false=0.0, unknown_prob=0.0)
SPANS = (Span(0, 3, "PER"), Span(4, 5, "LOC"), Span(6, 10, "ORG"))  # the second is too short for a word
N_TRIALS = 4000
WORDS_AT = ((0, 2), (1, 4), (6, 10), (15, 18))


def encoded(n_chars: int = 20, words: tuple[tuple[int, int], ...] = WORDS_AT) -> EncodedLattice:
    return EncodedLattice(
        chars=np.arange(n_chars) + 3,
        bigrams=np.arange(n_chars) + 3,
        words=np.arange(len(words)) + 10,
        starts=np.array([s for s, _ in words], np.int64),
        ends=np.array([e for _, e in words], np.int64),
        counts=np.arange(len(words)) + 1,
        groups=np.ones(len(words), np.int64),
        text="字" * n_chars,
    )


def same(a: EncodedLattice, b: EncodedLattice) -> bool:
    return all(np.array_equal(getattr(a, f.name), getattr(b, f.name)) for f in fields(EncodedLattice))


def user_spans(lattice: EncodedLattice) -> list[tuple[int, int]]:
    rows = zip(lattice.words.tolist(), lattice.starts.tolist(), lattice.ends.tolist(), strict=True)
    return [(start, end) for row, start, end in rows if row == USER]


def trials(regime: UserWordRegime, lattice: EncodedLattice | None = None) -> list[EncodedLattice]:
    lattice = lattice or encoded()
    return [simulate_user_words(lattice, SPANS, regime, np.random.default_rng((7, k)))[0] for k in range(N_TRIALS)]


def close_to(share: float) -> object:
    """Within five standard errors."""
    return pytest.approx(share, abs=5 * max(share * (1 - share), 1e-3) ** 0.5 / N_TRIALS**0.5)


def test_all_zero_is_plain_training():
    assert all(same(x, encoded()) for x in trials(PLAIN)[:200])


def test_the_random_generator_decides_all():
    regime = UserWordRegime()
    lattice = encoded()
    first, again, other = (
        [simulate_user_words(lattice, SPANS, regime, np.random.default_rng((seed, k)))[0] for k in range(50)]
        for seed in (1, 1, 2)
    )
    assert all(same(a, b) for a, b in zip(first, again, strict=True))
    assert not all(same(a, b) for a, b in zip(first, other, strict=True))


def test_the_given_lattice_is_never_changed():
    lattice = encoded()
    for part in (lattice.words, lattice.starts, lattice.ends, lattice.chars):
        part.flags.writeable = False
    for k in range(100):
        simulate_user_words(lattice, SPANS, UserWordRegime(1.0, 1.0, 3.0, 0.5), np.random.default_rng(k))
    assert same(lattice, encoded())


def test_shares_of_sentences_and_entities():
    found = [user_spans(x) for x in trials(replace(PLAIN, sentence_prob=0.6, entity_prob=0.3))]
    for span in ((0, 3), (6, 10)):
        assert np.mean([span in spans for spans in found]) == close_to(0.6 * 0.3)
    assert {span for spans in found for span in spans} == {(0, 3), (6, 10)}  # a single character is no word
    both = np.mean([len(spans) == 2 for spans in found])
    assert both == close_to(0.6 * 0.3**2)  # the sentence is drawn once, then each entity by itself


def test_an_entity_of_two_characters_is_a_word_and_one_of_one_is_not():
    spans = (Span(0, 2, "PER"), Span(3, 4, "LOC"))
    for k in range(20):
        rng = np.random.default_rng(k)
        found, _ = simulate_user_words(encoded(), spans, replace(PLAIN, sentence_prob=1.0, entity_prob=1.0), rng)
        assert user_spans(found) == [(0, 2)]


def test_shares_of_false_words():
    lattice = encoded(400, ())  # long: two false words seldom coincide
    found = [user_spans(x) for x in trials(replace(PLAIN, sentence_prob=0.5, n_false=1.5), lattice)]
    assert np.mean([len(spans) > 0 for spans in found]) == close_to(0.5 * (1 - np.exp(-1.5)))
    assert np.mean([len(spans) for spans in found]) == pytest.approx(0.75, rel=0.1)
    lengths = np.bincount([end - start for spans in found for start, end in spans])
    assert lengths[:2].sum() == 0 and len(lengths) == 7 and lengths[2] > lengths[3] > lengths[5]
    starts = [start for spans in found for start, _ in spans]
    assert min(starts) < 20 and max(starts) > 370


def test_share_of_unknown_words():
    simulated = trials(replace(PLAIN, unknown_prob=0.25))
    assert np.mean([x.words == UNK for x in simulated], axis=0).tolist() == [close_to(0.25)] * len(WORDS_AT)
    known = np.arange(len(WORDS_AT)) + 10
    assert all(((x.words == UNK) | (x.words == known)).all() and not user_spans(x) for x in simulated)
    assert all(np.array_equal(x.starts, encoded().starts) for x in simulated)


def test_no_number_is_drawn_for_what_is_off():
    found, expected = np.random.default_rng(3), np.random.default_rng(3)
    expected.random()  # whether this sentence gets user words
    lattice = encoded()
    plain, spans = simulate_user_words(lattice, SPANS, PLAIN, found)
    assert spans is SPANS
    assert found.bit_generator.state == expected.bit_generator.state
    assert plain.words is lattice.words and plain.starts is lattice.starts  # nothing is copied
    assert plain.word_labels is lattice.word_labels


def test_a_users_own_node_never_becomes_unknown():
    lattice = replace(encoded(), words=np.array([USER, 11, USER, 13]))
    for x in trials(replace(PLAIN, unknown_prob=1.0), lattice)[:20]:
        assert x.words.tolist() == [USER, UNK, USER, UNK]


@st.composite
def cases(draw) -> tuple[EncodedLattice, list[Span], UserWordRegime, int]:
    n_chars = draw(st.integers(0, 15))
    spans, start = [], 0
    while start < n_chars and draw(st.booleans()):
        end = draw(st.integers(start + 1, n_chars))
        spans.append(Span(start, end, "X"))
        start = end
    regime = UserWordRegime(
        sentence_prob=draw(st.sampled_from([0.5, 1.0])),
        entity_prob=draw(st.sampled_from([0.0, 0.5, 1.0])),
        n_false=draw(st.sampled_from([0.0, 1.0, 8.0])),
        unknown_prob=draw(st.sampled_from([0.0, 0.3])),
    )
    words = tuple((k, k + 2) for k in range(0, max(0, n_chars - 2), 3))
    return encoded(n_chars, words), spans, regime, draw(st.integers(0, 10_000))


@given(cases())
def test_user_nodes_are_words_within_the_text_each_once(case):
    lattice, spans, regime, seed = case
    simulated, _ = simulate_user_words(lattice, spans, regime, np.random.default_rng(seed))
    n_old = len(lattice.words)
    assert np.array_equal(simulated.starts[:n_old], lattice.starts) and np.array_equal(
        simulated.ends[:n_old], lattice.ends
    )
    assert set(simulated.words[n_old:].tolist()) <= {USER} and USER not in simulated.words[:n_old]
    added = user_spans(simulated)
    assert len(set(added)) == len(added)
    assert all(start >= 0 and start + 2 <= end <= len(lattice.chars) for start, end in added)
    assert simulated.starts.dtype == simulated.ends.dtype == simulated.words.dtype == np.int64
    for name in ("chars", "bigrams", "text"):
        assert getattr(simulated, name) is getattr(lattice, name)


@given(cases())
def test_a_false_word_is_never_a_gold_entity(case):
    lattice, spans, regime, seed = case
    regime = replace(regime, entity_prob=0.0, n_false=8.0)  # all user nodes are false ones
    simulated, _ = simulate_user_words(lattice, spans, regime, np.random.default_rng(seed))
    assert not set(user_spans(simulated)) & {(s.start, s.end) for s in spans}


LABELS = ("LOC", "ORG", "PER")
TYPED = replace(PLAIN, sentence_prob=1.0, entity_prob=1.0, label_prob=0.8, wrong_label_prob=0.25)


def typed_trials(
    regime: UserWordRegime, spans: Sequence[Span] = SPANS, labels: Sequence[str] = LABELS
) -> list[tuple[dict[tuple[int, int], int], Sequence[Span]]]:
    """(label id of each user node, gold spans) of many trials."""
    found = []
    for k in range(N_TRIALS):
        lattice, gold = simulate_user_words(
            encoded(20, ()), spans, regime, np.random.default_rng((9, k)), word_labels=labels
        )
        places = zip(lattice.starts.tolist(), lattice.ends.tolist(), strict=True)
        found.append((dict(zip(places, lattice.word_labels.tolist(), strict=True)), gold))
    return found


def shares(ids: list[int], n_ids: int) -> list[float]:
    return (np.bincount(ids, minlength=n_ids) / len(ids)).tolist()


def test_shares_of_right_and_wrong_labels():
    found = typed_trials(TYPED)
    assert all(gold is SPANS for _, gold in found)
    for span, label in (((0, 3), 3), ((6, 10), 2)):  # PER and ORG
        expected = [0.2, 0.1, 0.1, 0.1]  # none, and the two wrong ones
        expected[label] = 0.6
        assert shares([ids[span] for ids, _ in found], 4) == [close_to(share) for share in expected]


def test_a_single_known_label_is_never_wrong():
    found = typed_trials(TYPED, labels=("PER",))
    assert shares([ids[0, 3] for ids, _ in found], 2) == [close_to(0.2), close_to(0.8)]
    assert all(ids[6, 10] == 0 for ids, _ in found), "ORG is no label that the model knows: it carries none"


def test_false_words_carry_any_label():
    regime = replace(TYPED, entity_prob=0.0, n_false=2.0)
    ids = [number for found, _ in typed_trials(regime, ()) for number in found.values()]
    assert shares(ids, 4) == [pytest.approx(share, abs=0.03) for share in (0.2, 0.8 / 3, 0.8 / 3, 0.8 / 3)]
    assert not any(number for found, _ in typed_trials(regime, (), ()) for number in found.values())


def test_a_sentence_plays_a_type_that_the_model_does_not_know():
    spans = (Span(0, 3, "PER"), Span(4, 5, "PER"), Span(6, 10, "ORG"), Span(11, 13, "PER"), Span(14, 16, "ANY"))
    regime = replace(TYPED, unknown_label_prob=0.5, wrong_label_prob=0.0)
    played = {"PER": 0, "ORG": 0}
    for ids, gold in typed_trials(regime, spans):
        stars = [span for span in gold if span.label == "*"]
        assert ids[14, 16] == 0 and gold[4] == spans[4], "a type that is none of the model's is left alone"
        if not stars:
            assert gold is spans and 4 not in ids.values()
            continue
        assert [(s.start, s.end) for s in gold] == [(s.start, s.end) for s in spans]
        # Those of the type that are listed, and not the one that is too short to be.
        assert [(s.start, s.end) for s in stars] in ([(0, 3), (11, 13)], [(6, 10)])
        played["ORG" if stars[0].start == 6 else "PER"] += 1
        assert {place for place, number in ids.items() if number == 4} == {(s.start, s.end) for s in stars}
        assert gold[1].label == "PER"
    assert [played[label] / N_TRIALS for label in ("PER", "ORG")] == [close_to(0.25)] * 2


def test_false_words_carry_the_unknown_label_where_it_is_played():
    regime = replace(TYPED, unknown_label_prob=1.0, n_false=2.0)
    false = [
        (number, any(span.label == "*" for span in gold))
        for ids, gold in typed_trials(replace(regime, entity_prob=0.5))
        for place, number in ids.items()
        if place not in ((0, 3), (6, 10))
    ]
    assert np.mean([number == 4 for number, plays in false if plays]) == pytest.approx(0.4, abs=0.03)
    assert not any(number == 4 for number, plays in false if not plays)
    nothing = typed_trials(regime, ())
    assert all(gold == () and 4 not in ids.values() for ids, gold in nothing), "nothing to play without entities"


def test_labels_change_nothing_else():
    plain = replace(PLAIN, sentence_prob=0.7, entity_prob=0.6, n_false=1.0, unknown_prob=0.2)
    typed = replace(plain, label_prob=0.7, wrong_label_prob=0.2, unknown_label_prob=0.5)
    for k in range(200):
        first, second = (
            simulate_user_words(encoded(), SPANS, regime, np.random.default_rng(k), word_labels=LABELS)[0]
            for regime in (plain, typed)
        )
        assert same(first, replace(second, word_labels=first.word_labels)) and not first.word_labels.any()
