"""UserWord: a word that a user added, the entity type that it names, and whether it is evidence or a rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from cige.errors import LexiconError
from cige.lexicon.word_rules import SINGLE, reason_to_refuse

Mode = Literal["evidence", "force", "block"]
MODES: tuple[Mode, ...] = get_args(Mode)
EVIDENCE, FORCE, BLOCK = MODES
UNKNOWN_TYPE = "*"  # the label of names whose type a tagger was not trained on; users cannot use it
MAX_LABEL_CHARS = 64

NO_MODE = f"unknown mode (expected {', '.join(MODES)})"
BAD_LABEL = f"not a label (expected up to {MAX_LABEL_CHARS} printable characters without blanks, and not '*')"
NO_LABEL = "mode force without a label to force"
BLOCKED_LABEL = "mode block with a label (a blocked word is no entity of any type)"


@dataclass(frozen=True)
class UserWord:
    """A word that a user added.

    Attributes:
        text: the word, normalised.
        label: the entity type that it names, or None if the user gave none.
        mode: "evidence": the model considers the word and its label together with the rest of the text. "force": it is
            always tagged with its label. "block": exactly this word is never an entity.
    """

    text: str
    label: str | None = None
    mode: Mode = EVIDENCE

    @property
    def is_node(self) -> bool:
        """Whether it is a node of lattices. Blocked words and single characters are not."""
        return self.mode != BLOCK and len(self.text) >= 2


UserWords = Iterable[str | UserWord] | Mapping[str, str | None]


def user_words_of(words: UserWords) -> list[UserWord]:
    """Convert the words of a call to `UserWord`s; they are not checked.

    Args:
        words: strings, `UserWord`s with label and mode, or a dict of words and labels (None for no label).

    Raises:
        LexiconError: a string was given instead of a list, or an item is not a word.
    """
    if isinstance(words, str | bytes):
        raise LexiconError(f"words={words!r}: expected a list of words, such as [{words!r}]")
    listed = [UserWord(*item) for item in words.items()] if isinstance(words, Mapping) else list(words)
    found = [UserWord(word) if isinstance(word, str) else word for word in listed]
    for word in found:
        if not isinstance(word, UserWord) or not isinstance(word.text, str):
            given = type(word.text if isinstance(word, UserWord) else word).__name__
            raise LexiconError(f"words: expected strings or UserWords, got {given}")
        if not isinstance(word.label, str | None):
            raise LexiconError(f"words: the label of {word.text!r} is {type(word.label).__name__}, expected a string")
    return found


def is_label(label: str) -> bool:
    """Whether a string is valid as the label of a word."""
    return (
        0 < len(label) <= MAX_LABEL_CHARS
        and label.isprintable()
        and not any(map(str.isspace, label))
        and label != UNKNOWN_TYPE
    )


def reason_to_refuse_user_word(word: UserWord) -> str | None:
    """Why a user cannot add `word`, or None. Spaces are allowed, and single characters in the modes force and block."""
    problem = reason_to_refuse(word.text, spaces=True)
    if word.mode not in MODES:
        return NO_MODE
    if problem is not None and not (problem == SINGLE and word.mode != EVIDENCE):
        return problem
    if word.label is not None and not is_label(word.label):
        return BAD_LABEL
    if word.mode == FORCE and word.label is None:
        return NO_LABEL
    return BLOCKED_LABEL if word.mode == BLOCK and word.label is not None else None
