"""Documents that are read again with their names: which names are looked for, and what is found then."""

import pytest

import cige
from cige.entities.entity import Entity
from cige.errors import ModelError
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.user_word import UserWord
from cige.tagging.consistency import names_to_look_for

TEXT = "著名演员杜鹃在北京出席了发布会。随后杜鹃说，明年再来。很多人喜欢杜鹃。"


@pytest.fixture
def ner():
    return cige.load()


def pairs(entities):
    return [(e.text, e.label) for e in entities]


def entities_of(text, *found):
    """Entities (name, label, score, which occurrence of the name) of a text."""
    made = []
    for name, label, score, k in found:
        start = -1
        for _ in range(k + 1):
            start = text.index(name, start + 1)
        made.append(Entity(start, start + len(name), label, name, score))
    return sorted(made, key=lambda entity: entity.start)


def looked_for(text, *found, own=()):
    return names_to_look_for(text, entities_of(text, *found), user_words=own)


def test_a_name_that_is_clear_in_one_place_is_found_in_the_others(ner):
    before, after = ner(TEXT), ner(TEXT, consistent=True)
    assert pairs(before).count(("杜鹃", "PER")) == 2 and pairs(after).count(("杜鹃", "PER")) == 3
    assert set(pairs(before)) <= set(pairs(after)) and all(TEXT[e.start : e.end] == e.text for e in after)
    assert ner.lexicon.user_words == () and pairs(ner(TEXT)) == pairs(before)


def test_texts_of_a_stream_keep_their_order_and_share_no_names(ner):
    texts = ["很多人喜欢杜鹃。", TEXT, "", "很多人喜欢杜鹃。"] * 5
    found = list(ner.pipe(texts, consistent=True, batch_size=4))
    assert [pairs(entities) for entities in found] == [pairs(ner(text, consistent=True)) for text in texts]
    assert found[0] == found[3] == ner(texts[0])


def test_labels_and_words_of_the_call_hold_the_second_time_too(ner):
    assert {e.label for e in ner(TEXT, consistent=True, labels=["PER"])} == {"PER"}
    blocked = ner(TEXT, consistent=True, words=[UserWord("杜鹃", None, "block")])
    assert "杜鹃" not in [e.text for e in blocked]


def test_which_names_are_looked_for():
    text = "杜鹃说好。杜鹃走了。杜鹃队赢了。"
    assert looked_for(text, ("杜鹃", "PER", 0.9, 0)) == [UserWord("杜鹃", "PER")]
    assert looked_for(text, ("杜鹃", "PER", 0.4, 0)) == [], "not sure enough"
    assert looked_for(text, ("杜鹃", "PER", 0.9, 0), own={"杜鹃"}) == [], "the user said what it is"
    everywhere = [("杜鹃", "PER", 0.9, 0), ("杜鹃", "PER", 0.9, 1)]
    assert looked_for(text, *everywhere, ("杜鹃队", "ORG", 0.9, 0)) == [], "where it is left, it is part of another"
    voted = [("杜鹃", "ORG", 0.9, 0), ("杜鹃", "PER", 0.6, 1)]
    assert looked_for(text, *voted) == [UserWord("杜鹃", "ORG")]
    assert looked_for("云说。云走了。", ("云", "PER", 0.9, 0)) == [], "single characters cannot be words"


def test_a_name_in_two_spellings_is_one_name():
    text = "臺灣來了，台湾走了，臺灣和台湾。"
    found = [("臺灣", "LOC", 0.8, 0), ("台湾", "GPE", 0.9, 0)]
    assert looked_for(text, *found) == [UserWord("台湾", "GPE")], "not one word for each spelling and label"
    assert looked_for("臺灣來了，台湾走了。", ("臺灣", "LOC", 0.8, 0)) == [UserWord("台湾", "LOC")]


def test_what_it_does_not_go_with(ner):
    with pytest.raises(ValueError, match="consistent and recall"):
        ner(TEXT, consistent=True, recall=0.9)
    from cige.tagging.finder import EntityFinder

    class Wordless(EntityFinder):
        labels, label_facts, _stream = [], ner.label_facts, None

    with pytest.raises(ModelError, match="Wordless reads the words of its own vocabulary"):
        Wordless()(TEXT, consistent=True)


def test_a_name_with_other_marks_is_the_same_name():
    text = "西门子（中国）到了。西门子(中国)走了。"
    assert looked_for(text, ("西门子（中国）", "ORG", 0.9, 0)) == [UserWord("西门子(中国)", "ORG")]
    own = Lexicon.from_words(["甲乙"])
    own.add("西门子（中国）", label="CLIENT")
    assert looked_for(text, ("西门子（中国）", "CLIENT", 0.9, 0), own=own.user_words) == []
