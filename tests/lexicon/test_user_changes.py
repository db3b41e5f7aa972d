"""The words that a user changed, as JSON: what is saved comes back, and what has another form is refused by name."""

from __future__ import annotations

import pytest

from cige.errors import LexiconError
from cige.lexicon.user_word import UserChanges, UserWord


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
