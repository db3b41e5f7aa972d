"""Mention replacement: context stays, spans follow, labels and their number stay."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cige.data.mentions import MentionPool, MentionRegime
from cige.data.sentence import Sentence, Span

KNOWN = [
    Sentence("王毅在北京", (Span(0, 2, "PER"), Span(3, 5, "LOC")), 1),
    Sentence("张桂梅来到了呼和浩特市", (Span(0, 3, "PER"), Span(6, 11, "LOC")), 7),
    Sentence("今天没有", (), 9),
]
POOL = MentionPool(KNOWN)
ALWAYS = MentionRegime(sentence_prob=1.0, entity_prob=1.0)


def outcomes(sentence: Sentence, regime: MentionRegime, n: int = 60) -> list[Sentence]:
    return [POOL.replace(sentence, regime, np.random.default_rng(k)) for k in range(n)]


def test_entities_of_the_same_label_take_each_others_place() -> None:
    found = {s.text for s in outcomes(KNOWN[0], ALWAYS)}
    assert found == {"王毅在北京", "王毅在呼和浩特市", "张桂梅在北京", "张桂梅在呼和浩特市"}
    longest = next(s for s in outcomes(KNOWN[0], ALWAYS) if s.text == "张桂梅在呼和浩特市")
    assert longest.spans == (Span(0, 3, "PER"), Span(4, 9, "LOC"))
    assert longest.line == 1


def test_never_by_default_and_never_without_entities() -> None:
    assert all(s is KNOWN[0] for s in outcomes(KNOWN[0], MentionRegime()))
    assert all(s is KNOWN[2] for s in outcomes(KNOWN[2], ALWAYS))


def test_probabilities_are_kept() -> None:
    regime = MentionRegime(sentence_prob=0.5, entity_prob=1.0)
    changed = sum(s is not KNOWN[0] for s in outcomes(KNOWN[0], regime, 2000))
    assert 0.33 < changed / 2000 < 0.42  # half, less a quarter that draw their own text twice


def test_a_sentence_in_which_nothing_changed_is_the_sentence_itself() -> None:
    pool = MentionPool([KNOWN[0]])  # each label has one name alone, so it is drawn in its own place
    assert all(pool.replace(KNOWN[0], ALWAYS, np.random.default_rng(k)) is KNOWN[0] for k in range(20))
    changed = [s for s in outcomes(KNOWN[0], ALWAYS) if s.text != KNOWN[0].text]
    assert changed and all(s is not KNOWN[0] for s in changed)


def test_a_sentence_without_entities_draws_nothing() -> None:
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    assert POOL.replace(KNOWN[2], ALWAYS, rng) is KNOWN[2] and rng.bit_generator.state == before
    POOL.replace(KNOWN[0], ALWAYS, rng)
    assert rng.bit_generator.state != before


names = st.text(st.sampled_from("甲乙丙丁戊"), min_size=1, max_size=3)


@given(st.lists(st.tuples(st.text(st.sampled_from("，的在"), max_size=3), names, st.sampled_from("XY")), max_size=5))
def test_context_and_labels_survive(pieces: list[tuple[str, str, str]]) -> None:
    text, spans = "", []
    for between, name, label in pieces:
        text += between + name
        spans.append(Span(len(text) - len(name), len(text), label))
    sentence = Sentence(text + "。", tuple(spans))
    pool = MentionPool([sentence])
    new = pool.replace(sentence, MentionRegime(1.0, 0.7), np.random.default_rng(len(text)))
    assert [s.label for s in new.spans] == [s.label for s in spans]
    assert re.sub("[甲乙丙丁戊]", "", new.text) == re.sub("[甲乙丙丁戊]", "", sentence.text)
    used = {(s.label, new.text[s.start : s.end]) for s in new.spans}
    assert used <= {(s.label, sentence.text[s.start : s.end]) for s in spans}


def test_nested_entities_are_replaced_together():
    inner = Sentence("去北京大学吧", (Span(1, 3, "LOC"), Span(1, 5, "ORG")))
    other = Sentence("他在南京师范大学校医院", (Span(2, 4, "LOC"), Span(2, 8, "ORG"), Span(2, 11, "ORG")))
    pool = MentionPool([inner, other])
    regime = MentionRegime(sentence_prob=1.0, entity_prob=1.0)
    made = {pool.replace(inner, regime, np.random.default_rng(seed)) for seed in range(40)}
    assert made == {
        inner,
        Sentence("去南京师范大学吧", (Span(1, 3, "LOC"), Span(1, 7, "ORG"))),
        Sentence("去南京师范大学校医院吧", (Span(1, 3, "LOC"), Span(1, 7, "ORG"), Span(1, 10, "ORG"))),
    }
    crossing = Sentence("北京大学", (Span(0, 3, "ORG"), Span(2, 4, "ORG")))
    assert pool.replace(crossing, regime, np.random.default_rng(0)) is crossing
