"""Labels of raw text."""

from __future__ import annotations

import numpy as np

from cige.data.sentence import Span
from cige.distant.labelling import SURE_SCORE, Candidate, drawn_words, labelled
from cige.distant.matching import TextWord
from cige.entities.entity import Entity

TEXT = "日本索尼电视机北京"


def entity(start: int, end: int, label: str, score: float) -> Entity:
    return Entity(start=start, end=end, label=label, text=TEXT[start:end], score=score)


def test_words_are_drawn_as_often_as_they_are_believed() -> None:
    words = [TextWord(0, 2, "日本", ("BRAND",)), TextWord(2, 4, "索尼", ("PRODUCT", "BRAND"))]
    trust = {"BRAND": {"日本": 0.0, "索尼": 1.0}, "PRODUCT": {"索尼": 0.3}}
    rng = np.random.default_rng(0)
    drawn = [drawn_words(words, trust, rng) for _ in range(2000)]
    labels = [candidates[0].span.label for candidates in drawn]
    assert all(len(candidates) == 1 and candidates[0].probability == 1.0 for candidates in drawn)
    assert abs(labels.count("BRAND|PRODUCT") / 2000 - 0.3) < 0.05 and labels.count("BRAND") + labels.count(
        "BRAND|PRODUCT"
    ) == len(labels)


def test_likely_words_beat_what_the_model_finds_and_unlikely_ones_do_not() -> None:
    strong, weak = Candidate(Span(2, 4, "BRAND"), 0.9), Candidate(Span(0, 2, "BRAND"), 0.3)
    own = [entity(0, 2, "LOC", 0.95), entity(2, 4, "ORG", 0.95), entity(7, 9, "LOC", 0.6)]
    sentence = labelled(TEXT, [weak, strong], own)
    assert sentence.spans == (Span(0, 2, "LOC"), Span(2, 4, "BRAND"), Span(7, 9, "LOC?"))


def test_unsure_and_silent_finds_give_way_to_any_listed_word() -> None:
    weak = Candidate(Span(4, 7, "PRODUCT"), 0.3)
    for own in (entity(4, 6, "MISC", 0.99), entity(4, 6, "ORG", 0.5)):
        assert labelled(TEXT, [weak], [own], silent=frozenset(["MISC"])).spans == (weak.span,)


def test_what_an_earlier_round_found_stays() -> None:
    strong = Candidate(Span(4, 6, "PRODUCT"), 0.9)
    sentence = labelled(TEXT, [strong], [entity(2, 6, "ORG", 0.99)], learnt=[entity(4, 7, "PRODUCT", 0.6)])
    assert sentence.spans == (Span(4, 7, "PRODUCT"),)


def test_a_listed_word_that_gives_way_to_an_earlier_find_takes_nothing_else_away() -> None:
    weak = Candidate(Span(2, 5, "BRAND"), 0.3)
    sentence = labelled(TEXT, [weak], [entity(2, 4, "ORG", 0.5)], learnt=[entity(4, 7, "PRODUCT", 0.6)])
    assert sentence.spans == (Span(2, 4, "ORG?"), Span(4, 7, "PRODUCT"))


def test_what_is_exactly_sure_enough_is_sure() -> None:
    assert labelled(TEXT, [], [entity(0, 2, "LOC", SURE_SCORE)]).spans == (Span(0, 2, "LOC"),)
    even = Candidate(Span(2, 4, "BRAND"), 0.5)  # as likely as not: it gives way to what the model is sure of
    assert labelled(TEXT, [even], [entity(2, 4, "ORG", 0.95)]).spans == (Span(2, 4, "ORG"),)
