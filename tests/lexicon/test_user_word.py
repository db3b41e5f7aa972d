"""Which words a user may add, with which labels and modes, and the words that a user changed as JSON."""

from __future__ import annotations

import pytest

from cige.errors import LexiconError
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.user_word import (
    BAD_LABEL,
    BLOCKED_LABEL,
    NO_LABEL,
    NO_MODE,
    UserChanges,
    UserWord,
    is_label,
    reason_to_refuse_user_word,
)
from cige.lexicon.word_rules import EDGE, SINGLE


@pytest.mark.parametrize("label", ["PRODUCT", "PER.NOM", "产品", "a" * 64, "B-X", "OO", "**"])
def test_labels(label):
    assert is_label(label) and reason_to_refuse_user_word(UserWord("贺兰草", label)) is None


@pytest.mark.parametrize(
    "label", ["", " ", "*", "A B", "A\tB", "a" * 65, "A\n", "\u200b", "\ud800", "O", "?", "PER|ORG"]
)
def test_strings_that_are_no_label(label):
    assert not is_label(label) and reason_to_refuse_user_word(UserWord("贺兰草", label)) == BAD_LABEL


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        (UserWord("贺兰草"), None),
        (UserWord("iPhone 15", "PRODUCT", "force"), None),
        (UserWord("贺兰草", None, "block"), None),
        (UserWord("京"), SINGLE),
        (UserWord("京", "LOC"), SINGLE),
        (UserWord("京", "LOC", "force"), None),
        (UserWord("京", None, "block"), None),
        (UserWord("贺兰草", None, "force"), NO_LABEL),
        (UserWord("贺兰草", "PRODUCT", "block"), BLOCKED_LABEL),
        (UserWord("贺兰草", "PRODUCT", "forced"), NO_MODE),
        (UserWord(" 贺兰", "PRODUCT", "force"), EDGE),
    ],
)
def test_words(word, problem):
    assert reason_to_refuse_user_word(word) == problem


def test_nodes_are_neither_blocked_nor_single_characters():
    assert UserWord("贺兰草").is_node and UserWord("贺兰草", "X", "force").is_node
    assert not UserWord("贺兰草", None, "block").is_node and not UserWord("京", "LOC", "force").is_node


def test_changes_come_back_from_json():
    words = (
        UserWord("天津"),
        UserWord("南京市", "LOC"),
        UserWord("北京", "ORG", "force"),
        UserWord("长江", None, "block"),
    )
    for changes in (UserChanges(), UserChanges(words, ("大桥", "天津"))):
        assert UserChanges.from_dict(changes.to_dict(), source="user.json") == changes
        assert bool(changes) == bool(changes.added)
    assert UserChanges(words[:1]).to_dict() == {"added": ["天津"], "removed": []}


@pytest.mark.parametrize(
    "user",
    [
        None,
        ["天津"],
        {},
        {"added": ["天津"]},
        {"added": "天津", "removed": []},
        {"added": ["天津"], "removed": "天津"},
        {"added": {"天津": "LOC"}, "removed": []},
        {"added": [3], "removed": []},
        {"added": [], "removed": ["天津", None]},
        {"added": ["天津"], "removed": [], "labels": ["LOC"]},
        {"added": ["天津"], "removed": [], "labels": {"天津": 3}},
        {"added": ["天津"], "removed": [], "modes": "force"},
        {"added": ["天津"], "removed": [], "modes": {"天津": None}},
    ],
)
def test_what_has_another_form_is_refused_by_the_name_of_its_file(user):
    with pytest.raises(LexiconError, match=r"user\.json: not the words that a user changed; expected"):
        UserChanges.from_dict(user, source="user.json")


def test_a_word_that_cannot_have_its_label_is_named():
    with pytest.raises(LexiconError, match=r"user\.json: '天津' \(.*\); add the words again"):
        UserChanges.from_dict({"added": ["天津"], "removed": [], "modes": {"天津": "fourth"}}, source="user.json")


@pytest.mark.parametrize("label", ["O", "?", "PER|ORG"])
def test_labels_of_older_versions_are_still_read(label):
    """Since 0.2.0 such labels cannot be given to words, but a saved model must open."""
    saved = {"added": ["贺兰草"], "removed": [], "labels": {"贺兰草": label}, "modes": {"贺兰草": "force"}}
    changes = UserChanges.from_dict(saved, source="user.json")
    assert changes.added == (UserWord("贺兰草", label, "force"),)
    with pytest.raises(LexiconError, match="not a label"):
        UserChanges.from_dict(saved | {"labels": {"贺兰草": "*"}}, source="user.json")


@pytest.mark.parametrize("text", ["\ufeff贺兰草", "贺兰草\u200b", "\u200e贺兰草", "贺\u00ad兰草"])
def test_invisible_characters_are_taken_out_of_words_and_saved_ones(text):
    lexicon = Lexicon.from_words([])
    lexicon.add(text)
    saved = UserChanges.from_dict({"added": [text], "removed": []}, source="user.json")
    for own in (lexicon, Lexicon.from_words([]).changed(saved)):
        assert list(own.user_words) == ["贺兰草"]
        assert text in own and "贺兰草" in own
        own.remove(text)
        assert not own.user_words
