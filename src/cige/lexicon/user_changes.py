"""UserChanges: the words that a user added and removed, which can be converted to JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from cige.errors import LexiconError
from cige.json_text import to_json
from cige.lexicon.user_word import EVIDENCE, UserWord, reason_to_refuse_user_word
from cige.lexicon.word_rules import MAX_WORD_CHARS

USER_FILE = "user.json"


@dataclass(frozen=True)
class UserChanges:
    """The changes of a user: added words with label and mode, and removed words. All words are normalised.

    Removals are applied before additions. A word in both was removed, then added: it is matched, and is removed again
    once it is no longer among the added words.
    """

    added: Sequence[UserWord] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)

    def to_dict(self) -> dict[str, object]:
        """The changes as JSON values; labels and modes are only listed for words that have them."""
        user: dict[str, object] = {"added": [word.text for word in self.added], "removed": list(self.removed)}
        labels = {word.text: word.label for word in self.added if word.label is not None}
        modes = {word.text: word.mode for word in self.added if word.mode != EVIDENCE}
        return user | ({"labels": labels} if labels else {}) | ({"modes": modes} if modes else {})

    @classmethod
    def from_dict(cls, user: Mapping[str, Any], *, source: str | PathLike[str]) -> UserChanges:
        """The changes from the result of `to_dict`, which was read from `source`. Raises a LexiconError if the value
        has another form, or a word cannot have its label or mode."""
        if not _is_whole(user):
            raise LexiconError(
                f"{source}: not the words that a user changed; expected an object with the lists added and removed, "
                "and the objects labels and modes"
            )
        labels, modes = user.get("labels", {}), user.get("modes", {})
        words = tuple(UserWord(text, labels.get(text), modes.get(text, EVIDENCE)) for text in user["added"])
        sound: set[tuple[str | None, str]] = set()  # labels and modes that a word was found to have rightly
        for word in words:
            facts = word.label, word.mode
            is_plain = 2 <= len(word.text) <= MAX_WORD_CHARS and word.text.isalnum()  # nearly every word
            if facts == (None, EVIDENCE) or (is_plain and facts in sound):
                continue
            if reason := reason_to_refuse_user_word(word, was_saved=True):
                raise LexiconError(f"{source}: {word.text!r} ({reason}); add the words again and save")
            sound.add(facts)
        return cls(words, tuple(user["removed"]))

    def save(self, folder: Path) -> None:
        """Write the changes into a lexicon folder."""
        (folder / USER_FILE).write_text(to_json(self.to_dict()), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> UserChanges:
        """Read the changes from a lexicon folder. Raises a LexiconError if the file cannot be read or has another
        content."""
        path = folder / USER_FILE
        try:
            user = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as reason:
            raise LexiconError(f"{path}: cannot be read ({reason}); copy the folder again") from reason
        return cls.from_dict(user, source=path)


def _is_whole(user: Any) -> bool:
    if not isinstance(user, Mapping):
        return False
    lists = (user.get("added"), user.get("removed"))
    maps = (user.get("labels", {}), user.get("modes", {}))
    return all(isinstance(words, list) and all(isinstance(word, str) for word in words) for words in lists) and all(
        isinstance(of, Mapping) and all(isinstance(value, str) for value in of.values()) for of in maps
    )
