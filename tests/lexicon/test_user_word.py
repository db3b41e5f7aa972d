"""Which words a user may add, with which labels and modes."""

from __future__ import annotations

import pytest

from cige.lexicon.user_word import (
    BAD_LABEL,
    BLOCKED_LABEL,
    NO_LABEL,
    NO_MODE,
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
