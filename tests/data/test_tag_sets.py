"""Gold tags that leave something open."""

from __future__ import annotations

import numpy as np
import pytest

from cige.data.sentence import Sentence, Span
from cige.data.tag_sets import GoldTags, TagSets
from cige.data.tags import tag_set
from cige.errors import DataError

TAGS = tag_set(["COMPANY", "ORG", "PER"])


def names(sets: TagSets, ids: np.ndarray) -> list[set[str]]:
    return [{TAGS[k] for k in np.flatnonzero(sets.log_weights[number] == 0)} for number in ids]


def test_a_full_annotation_gives_the_tags_themselves() -> None:
    sets = TagSets(TAGS)
    ids = GoldTags(sets, "BMES").ids(Sentence("李四在京东", (Span(0, 2, "PER"), Span(3, 5, "ORG"))))
    assert [TAGS[k] for k in ids] == ["B-PER", "E-PER", "O", "B-ORG", "E-ORG"]
    assert len(sets) == len(TAGS) and np.array_equal(sets.log_weights == 0, np.eye(len(TAGS), dtype=bool))


def test_parents_may_be_their_kinds_and_types_that_are_not_annotated_may_hide() -> None:
    sets = TagSets(TAGS)
    gold = GoldTags(sets, "BMES", allowed={"ORG": ["COMPANY", "ORG"]}, hidden=["PER"])
    got = names(sets, gold.ids(Sentence("李在京东", (Span(2, 4, "ORG"),))))
    anyone = {"O", "B-PER", "M-PER", "E-PER", "S-PER"}
    assert got == [anyone, anyone, {"B-COMPANY", "B-ORG"}, {"E-COMPANY", "E-ORG"}]


def test_a_span_that_stands_for_no_label_is_read_as_if_it_were_not_annotated() -> None:
    sets = TagSets(TAGS)
    gold = GoldTags(sets, "BMES", allowed={"MONEY": []})
    assert [TAGS[k] for k in gold.ids(Sentence("三元", (Span(0, 2, "MONEY"),)))] == ["O", "O"]


def test_equal_sets_share_an_id() -> None:
    sets = TagSets(TAGS)
    first, second = GoldTags(sets, "BMES", hidden=["PER"]), GoldTags(sets, "BMES", hidden=["PER"])
    sentence = Sentence("无名")
    assert first.ids(sentence).tolist() == second.ids(sentence).tolist() and len(sets) == len(TAGS) + 1


def test_mistakes_are_named() -> None:
    with pytest.raises(DataError, match=r"line 7.*'S-CITY'"):
        GoldTags(TagSets(TAGS), "BMES").ids(Sentence("京", (Span(0, 1, "CITY"),), line=7))
    with pytest.raises(DataError, match="allows no tag"):
        TagSets(TAGS).id_of([])


def test_a_labelled_word_narrows_its_span_to_the_label() -> None:
    sets = TagSets(TAGS)
    gold = GoldTags(sets, "BMES", allowed={"ORG": ["COMPANY", "ORG"], "PER": ["PER"]}, hidden=["PER"])
    sentence = Sentence("李在京东和华为", (Span(2, 4, "ORG"), Span(5, 7, "ORG")))
    ids = gold.ids(sentence)
    got = names(sets, gold.narrowed(ids, sentence.spans, {(2, 4, "ORG"), (5, 7, "PER"), (0, 1, "PER")}))
    assert got[2:4] == [{"B-ORG"}, {"E-ORG"}] and got[5:] == names(sets, ids)[5:] and got[:2] == names(sets, ids)[:2]
    assert gold.narrowed(ids, sentence.spans, set()) is ids


def test_hidden_entities_weigh_less_than_none() -> None:
    sets = TagSets(TAGS)
    (number,) = GoldTags(sets, "BMES", hidden=["PER"], hidden_odds=0.25).ids(Sentence("他"))
    weights = dict(zip(TAGS, np.exp(sets.log_weights[number]).round(6).tolist(), strict=True))
    assert weights["O"] == 1 and weights["B-PER"] == weights["S-PER"] == 0.25, "once per entity"
    assert weights["M-PER"] == weights["E-PER"] == 1 and weights["B-ORG"] == 0


def test_doubtful_spans_are_entities_or_none() -> None:
    sets = TagSets(TAGS)
    gold = GoldTags(sets, "BMES", hidden=["ORG"], hidden_odds=0.25, doubtful={"ORG": 4.0, "PER": 9.0})
    sentence = Sentence("他在大京东和李", (Span(2, 5, "ORG"), Span(6, 7, "PER")))
    table = np.exp(sets.log_weights[gold.ids(sentence)])

    def weight(*tags: str) -> float:
        return float(np.prod([table[k, TAGS.index(tag)] for k, tag in enumerate(tags)]))

    assert weight(*"OOOOOOO") == 1
    assert weight("O", "O", "B-ORG", "M-ORG", "E-ORG", "O", "O") == pytest.approx(4), "the span itself"
    assert weight("O", "B-ORG", "M-ORG", "M-ORG", "E-ORG", "O", "O") == pytest.approx(0.5), "one edge, hidden"
    assert weight("B-ORG", "E-ORG", "O", "O", "O", "O", "O") == pytest.approx(0.25), "elsewhere, hidden"
    assert weight("O", "O", "O", "O", "O", "O", "S-PER") == pytest.approx(9)
    assert weight("S-PER", "O", "O", "O", "O", "O", "O") == 0, "PER is annotated, doubtful spans aside"
