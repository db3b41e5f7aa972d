"""What an epoch reads: of a sentence by (seed, epoch, sentence) alone, of several corpora by their weights."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import tiny
from hypothesis import given
from hypothesis import strategies as st

from cige.data.mentions import MentionRegime
from cige.data.sentence import Sentence, Span
from cige.data.tag_sets import GoldTags, TagSets
from cige.data.tags import tags_to_spans
from cige.data.user_words import UserWordRegime
from cige.data.vocabulary import UNK, USER
from cige.errors import DataError
from cige.training.dataset import SourceMix, TrainingSet

PLAIN = UserWordRegime(sentence_prob=0, unknown_prob=0)
EAGER = UserWordRegime(sentence_prob=1, entity_prob=1, n_false=2, unknown_prob=0.5)


def training_set(
    regime: UserWordRegime,
    *,
    seed: int = 0,
    mentions: MentionRegime = MentionRegime(),  # noqa: B008
    typed: bool = False,
) -> TrainingSet:
    model, known = tiny.model(typed=typed), tiny.sentences(20)
    lattices = model.lattices([s.text for s in known])
    return TrainingSet(
        known,
        lattices,
        vocabulary=model.vocabulary,
        golds=[GoldTags(TagSets(model.tagger.tags), "BMES")],
        regime=regime,
        seed=seed,
        mentions=mentions,
        snapshot=model.lexicon.snapshot(),
    )


def same(a: tuple, b: tuple) -> bool:
    return all(
        np.array_equal(getattr(a[0], name), getattr(b[0], name)) for name in ("words", "starts", "ends", "chars")
    ) and np.array_equal(a[1], b[1])


def test_repeatable_in_any_order_and_new_each_epoch() -> None:
    made, again = training_set(EAGER), training_set(EAGER)
    forwards = [made.example(i, 0) for i in range(20)]
    backwards = [again.example(i, 0) for i in reversed(range(20))][::-1]
    assert all(map(same, forwards, backwards))
    assert not all(same(made.example(i, 0), made.example(i, 1)) for i in range(20))
    assert not all(map(same, forwards, [training_set(EAGER, seed=5).example(i, 0) for i in range(20)]))


def test_plain_training_reads_the_lattice_itself() -> None:
    made = training_set(PLAIN)
    for i in range(20):
        lattice, tags = made.example(i, 4)
        assert not np.isin(lattice.words, [USER]).any() and len(tags) == len(lattice.chars)
        assert lattice.n_nodes == made.n_nodes(4)[i]


def test_eager_training_adds_gold_entities_and_unknown_words() -> None:
    made, known = training_set(EAGER), tiny.sentences(20)
    seen_unknown = False
    for i, sentence in enumerate(known):
        lattice, _ = made.example(i, 0)
        user = {(s, e) for w, s, e in zip(lattice.words, lattice.starts, lattice.ends, strict=True) if w == USER}
        assert {(s.start, s.end) for s in sentence.spans} <= user
        seen_unknown |= bool((lattice.words == UNK).any())
    assert seen_unknown


def test_collated_tags_are_the_gold_ones() -> None:
    made = training_set(EAGER)
    batch = made.collate([made.example(i, 0) for i in range(3)])
    assert batch.tags is not None
    for row, i in zip(batch.tags, range(3), strict=True):
        assert row[: int(batch.n_chars[i])].tolist() == made.example(i, 0)[1].tolist()


def test_a_label_the_model_lacks_is_named() -> None:
    sentence = Sentence("北京人", (Span(0, 2, "CITY"),), line=12)
    with pytest.raises(DataError, match=r"line 12.*'B-CITY'"):
        GoldTags(TagSets(["O", "B-LOC"]), "BMES").ids(sentence)


def test_replaced_mentions_have_lattice_and_tags_of_their_own() -> None:
    made, known = training_set(PLAIN, mentions=MentionRegime(1.0, 1.0)), tiny.sentences(20)
    model = tiny.model()
    names = {(x.label, s.text[x.start : x.end]) for s in known for x in s.spans}
    n_changed = 0
    for i, sentence in enumerate(known):
        lattice, tags = made.example(i, 0)
        assert same((lattice, tags), made.example(i, 0))
        assert np.array_equal(lattice.words, model.vocabulary.encode(model.lattices([lattice.text])[0]).words)
        spans = tags_to_spans([model.tagger.tags[k] for k in tags], "BMES")
        assert [s.label for s in spans] == [s.label for s in sentence.spans]
        assert {(s.label, lattice.text[s.start : s.end]) for s in spans} <= names
        n_changed += lattice.text != sentence.text
    assert n_changed


def test_replacing_mentions_takes_a_snapshot() -> None:
    model, known = tiny.model(), tiny.sentences(2)
    with pytest.raises(ValueError, match="snapshot"):
        TrainingSet(
            known,
            model.lattices([s.text for s in known]),
            vocabulary=model.vocabulary,
            golds=[GoldTags(TagSets(model.tagger.tags), "BMES")],
            regime=PLAIN,
            seed=0,
            mentions=MentionRegime(sentence_prob=0.5),
        )


def test_entities_of_a_played_unknown_type_have_its_tags() -> None:
    regime = UserWordRegime(1.0, 1.0, 0.0, 0.0, label_prob=1.0, unknown_label_prob=1.0)
    made, known = training_set(regime, typed=True), tiny.sentences(20)
    plain = training_set(PLAIN, typed=True)
    names = tiny.model(typed=True).tagger.tags
    n_played = 0
    for i, sentence in enumerate(known):
        lattice, tags = made.example(i, 0)
        assert same((lattice, tags), made.example(i, 0))
        spans = tags_to_spans([names[tag] for tag in tags], "BMES")
        assert [(s.start, s.end) for s in spans] == [(s.start, s.end) for s in sentence.spans]
        labels = dict(zip(zip(lattice.starts, lattice.ends, strict=True), lattice.word_labels, strict=True))
        assert all((labels[s.start, s.end] == len(tiny.LABELS) + 1) == (s.label == "*") for s in spans)
        n_played += any(s.label == "*" for s in spans)
        assert np.array_equal(plain.example(i, 0)[1], GoldTags(TagSets(names), "BMES").ids(sentence))
    assert n_played == sum(bool(sentence.spans) for sentence in known)


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
