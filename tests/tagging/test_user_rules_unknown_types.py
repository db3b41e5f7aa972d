"""Entities of a type that only the user's words tell: where they may be, and what they are called."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
import torch

from cige.data.batch import collate
from cige.data.sentence import Span
from cige.data.tags import spans_to_tags, tag_set
from cige.data.user_words import UserWordRegime, simulate_user_words
from cige.lattice.lattice import Lattice
from cige.tagging.prediction import predict_spans
from cige.tagging.user_rules import label_of_user_word, without_unknown_type

TEXT = "甲乙丙丁戊己庚辛"
LABELS = ["LOC", "PER"]


def lattice(*words: tuple[int, int, str | None]) -> Lattice:
    """Over TEXT, words of a user's own (each once) and a base word over all."""
    labels = tuple(label for *_, label in words)
    rows = sorted((start, end, 1 + k) for k, (start, end, _) in enumerate(words))
    return Lattice(TEXT, np.array([(0, 8, 0), *rows], np.int32), 1, user_labels=labels if any(labels) else ())


@pytest.mark.parametrize(
    ("words", "label"),
    [
        ([], None),
        ([(2, 4, None)], None),
        ([(2, 4, "PER")], None),
        ([(2, 4, "FOOD")], "FOOD"),
        ([(0, 2, "FOOD"), (4, 6, "GAME")], None),
        ([(1, 7, "GAME"), (2, 4, "FOOD")], "FOOD"),
        ([(1, 3, "GAME"), (3, 6, "FOOD")], "FOOD"),
        ([(1, 3, "GAME"), (3, 5, "FOOD")], "GAME"),
        ([(2, 4, "PER"), (3, 5, "FOOD")], "FOOD"),
        ([(2, 4, "PER"), (2, 4, "FOOD"), (2, 4, None)], "FOOD"),
    ],
)
def test_the_word_that_names_a_span(words, label):
    assert label_of_user_word(2, 4, lattice(*words), LABELS) == label


def test_only_sentences_with_a_word_of_an_unknown_type_may_have_its_tags():
    tags = tag_set([*LABELS, "*"])
    emissions = np.random.default_rng(0).normal(size=(3, 8, len(tags))).astype(np.float32)
    given = emissions.copy()
    lattices = [lattice((2, 4, "FOOD")), lattice((2, 4, "PER")), lattice()]
    masked = without_unknown_type(emissions, tags, LABELS, lattices)
    of_unknown = np.array([tag.endswith("*") for tag in tags])
    assert of_unknown.sum() == 4 and (masked[1:, :, of_unknown] == -np.inf).all()
    assert np.array_equal(masked[0], given[0]) and np.array_equal(masked[..., ~of_unknown], given[..., ~of_unknown])
    assert np.array_equal(emissions, given), "what was given stays as it is"
    assert without_unknown_type(emissions, tags, LABELS, lattices[:1] * 3) is emissions
    plain = tag_set(LABELS)
    assert without_unknown_type(emissions[..., : len(plain)], plain, LABELS, lattices).base is emissions


def test_a_model_that_learnt_it_calls_a_name_what_the_user_calls_it():
    model = tiny.trained_model(typed=True)

    def found(text: str) -> list[tuple[str, str]]:
        spans = predict_spans(model, model.lattices([text]))[0]
        assert all(0 < span.score <= 1 for span in spans)
        return [(text[span.start : span.end], span.label) for span in spans]

    text = "龘靐在北京。"
    assert "*" not in {label for _, label in found(text)}
    model.lexicon.add("龘靐", label="STAR")
    assert found(text) == [("龘靐", "STAR"), ("北京", "LOC")]
    model.lexicon.add("天气", label="STAR")
    assert ("今天", "STAR") not in found("今天天气很好")


def test_a_label_decides_where_nothing_else_can():
    """Names whose type the text leaves open: a model that saw right labels follows them, whatever the word."""
    model = tiny.model(typed=True)
    rng = np.random.default_rng(0)
    optimizer = torch.optim.Adam(model.tagger.parameters(), lr=1e-2)
    regime = UserWordRegime(1.0, 1.0, 0.3, 0.0, label_prob=0.9)
    model.tagger.train()
    for _ in range(60):
        examples, gold = [], []
        for _ in range(8):
            name, label = tiny.new_name(rng), str(rng.choice(tiny.LABELS))
            spans = (Span(1, 1 + len(name), label),)
            encoded = model.vocabulary.encode(model.lattices([f"请{name}说话"])[0])
            examples.append(simulate_user_words(encoded, spans, regime, rng, word_labels=tiny.LABELS)[0])
            tags = spans_to_tags(len(encoded.text), spans)
            gold.append(np.array([model.tags.index(tag) for tag in tags]))
        optimizer.zero_grad()
        model.tagger.loss(collate(examples, gold)).backward()
        optimizer.step()
    for label in tiny.LABELS:
        model.lexicon.add("龘靐", label=label)
        spans = predict_spans(model, model.lattices(["请龘靐说话"]))[0]
        assert [(span.start, span.end, span.label) for span in spans] == [(1, 3, label)]
