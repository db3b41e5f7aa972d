"""UserWord: a word that a user added, its entity type and its mode; UserChanges: what a user added and removed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

from cige.errors import LexiconError
from cige.json_text import to_json
from cige.lexicon.word_rules import MAX_WORD_CHARS, SINGLE, reason_to_refuse
from cige.text.given import is_table, item_hint

Mode = Literal["evidence", "force", "block", "type", "block_exact"]
MODES: tuple[Mode, ...] = get_args(Mode)
EVIDENCE, FORCE, BLOCK, TYPE, BLOCK_EXACT = MODES
BLOCKING = (BLOCK, BLOCK_EXACT)
UNKNOWN_TYPE = "*"  # the label of names whose type a tagger was not trained on; users cannot use it
RESERVED_LABELS = (UNKNOWN_TYPE, "O")  # O is what tags call a character outside of entities
ALTERNATIVES = "|?"  # in annotations, PER|ORG is one of two types and ? a doubt; a word names one type
MAX_LABEL_CHARS = 64

NO_MODE = f"unknown mode (expected {', '.join(MODES)})"
BAD_LABEL = f"not a label (expected up to {MAX_LABEL_CHARS} printable characters; not '*', 'O', blanks, '|' or '?')"
NO_LABEL = "mode force or type without a label"
BLOCKED_LABEL = "mode block with a label (a blocked word is no entity of any type)"
_NAMED_TYPES = "PER PERSON LOC GPE FAC SCENE ORG COMPANY GOVERNMENT PRODUCT BRAND MEDICINE"
_OTHER_TYPES = "GAME BOOK MOVIE VIDEO SONG WORK TIME DATE POSITION MISC"
COMMON_TYPES = frozenset(f"{_NAMED_TYPES} {_OTHER_TYPES}".split())
"""Types that nobody means as words of their own."""
USER_FILE = "user.json"


@dataclass(frozen=True, slots=True)
class UserWord:
    """A word that a user added.

    Attributes:
        text: the word, normalised.
        label: the entity type that it names, or None if the user gave none.
        mode: "evidence": the model considers the word and its label together with the rest of the text. "type": like
            evidence, but where the model finds exactly this word as an entity, the entity has this label. "force": it
            is always tagged with its label. "block": neither this word nor anything inside it is an entity.
            "block_exact": exactly this word is never an entity.
    """

    text: str
    label: str | None = None
    mode: Mode = EVIDENCE

    @property
    def is_node(self) -> bool:
        """Whether it is a node of lattices. Blocked words and single characters are not."""
        return self.mode not in BLOCKING and len(self.text) >= 2


UserWords = Iterable[str | UserWord] | Mapping[str, str | None]


def user_words_of(words: UserWords) -> list[UserWord]:
    """Convert the words of a call to `UserWord`s; they are not checked. See `each_user_word`."""
    return [UserWord(text, label, mode) for text, label, mode in each_user_word(words)]  # type: ignore[arg-type]


def each_user_word(words: UserWords) -> Iterator[tuple[str, str | None, str]]:
    """The text, label and mode of each word of a call; they are not checked. Raises a LexiconError if a string was
    given instead of a list, or an item is not a word.

    Args:
        words: strings, `UserWord`s with label and mode, a dict of words and labels (None for no label), or a DataFrame
            with a column `word` and, if there are any, `label` and `mode`. They may have the other names of the header
            of a word file (see `delimited.HEADERS`), such as `Label` or 词 and 类型; other columns are ignored.
    """
    if isinstance(words, str):
        raise LexiconError(f"words={words!r}: expected a list of words, such as [{words!r}]")
    if isinstance(words, bytes):
        raise LexiconError("words: expected a list of words, got bytes; decode them first: words.decode('utf-8')")
    if is_table(words):
        yield from _of_table(words)
        return
    if not isinstance(words, Iterable):
        raise LexiconError(f"words: expected a list of words, got {type(words).__name__}")
    given: Iterable[tuple[Any, str | None, str]]
    if isinstance(words, Mapping):
        given = ((text, label, EVIDENCE) for text, label in words.items())
    else:
        given = ((w.text, w.label, w.mode) if isinstance(w, UserWord) else (w, None, EVIDENCE) for w in words)
    for number, (text, label, mode) in enumerate(given, 1):
        if not isinstance(text, str):
            got = f"got {type(text).__name__} as word {number}{_instead(text)}"
            raise LexiconError(f"words: expected strings or UserWords, {got}")
        if label is not None and not isinstance(label, str):
            raise LexiconError(f"words: the label of {text!r} is {type(label).__name__}, expected a string")
        yield text, label, mode


def completed(
    words: Iterable[tuple[str, str | None, str]], label: str | None, mode: str
) -> Iterator[tuple[str, str | None, str]]:
    """Words with the label and the mode of a call where they have none of their own; blocked words get no label."""
    for text, own_label, own_mode in words:
        own_mode = mode if own_mode == EVIDENCE else own_mode
        yield text, own_label if own_mode in BLOCKING else own_label or label, own_mode


def _instead(given: object) -> str:
    """What to give instead of an item of `words` that is no word."""
    if isinstance(given, bytes):
        return "; decode it first: word.decode('utf-8')"
    if hint := item_hint(given):
        return hint
    if isinstance(given, Mapping | list | tuple):
        return "; for words with labels, give a dict such as {'小米': 'COMPANY'}, or cige.UserWord(text, label, mode)"
    return ""


def _of_table(table: Any) -> Iterator[tuple[str, str | None, str]]:
    """The words of a DataFrame, of pandas or of a library with the same interface; empty cells are no label."""
    from cige.lexicon.delimited import COLUMNS, column_names

    names = zip(table.columns, column_names(list(map(str, table.columns)), is_header=True), strict=True)
    columns = {column: name for name, column in names if column in COLUMNS}
    if "word" not in columns:
        listed = ", ".join(map(str, table.columns)) or "no columns"
        raise LexiconError(f"words: a table with {listed}; expected a column word (or 词), and label if there are any")
    texts = list(table[columns["word"]])
    labels, modes = (list(table[columns[x]]) if x in columns else [None] * len(texts) for x in ("label", "mode"))
    for row, (text, label, mode) in enumerate(zip(texts, labels, modes, strict=True), start=1):
        if not isinstance(text, str):
            raise LexiconError(f"words: row {row} has {text!r} as its word; expected a string")
        is_labelled, has_mode = (isinstance(cell, str) and bool(cell) for cell in (label, mode))
        yield text, label if is_labelled else None, mode if has_mode else EVIDENCE


def is_label(label: str, *, was_saved: bool = False) -> bool:
    """Whether a string is valid as the label of a word, which was saved in a model before the rules about O, | and ?
    if `was_saved`."""
    is_short = 0 < len(label) <= MAX_LABEL_CHARS
    if not is_short or not label.isprintable() or any(map(str.isspace, label)) or label == UNKNOWN_TYPE:
        return False
    return was_saved or (label not in RESERVED_LABELS and not any(c in ALTERNATIVES for c in label))


def reason_to_refuse_user_word(word: UserWord, *, was_saved: bool = False) -> str | None:
    """Why a user cannot add `word`, or None. Spaces are allowed, and single characters in mode force and if blocked.
    Words that were saved in a model may be older than some of the rules."""
    problem = reason_to_refuse(word.text, spaces=True)
    if word.mode not in MODES:
        return NO_MODE
    if problem is not None and not (problem == SINGLE and word.mode not in (EVIDENCE, TYPE)):
        return problem
    if word.mode in BLOCKING and word.label is not None:
        return BLOCKED_LABEL
    if word.label is not None and not is_label(word.label, was_saved=was_saved):
        return BAD_LABEL
    return NO_LABEL if word.mode in (FORCE, TYPE) and word.label is None else None


def is_usable(label: str | None, mode: str, *, was_saved: bool = False) -> bool:
    """Whether ordinary words, of two or more letters, can have this label and mode."""
    word = UserWord("甲乙", label, mode)  # type: ignore[arg-type]
    return reason_to_refuse_user_word(word, was_saved=was_saved) is None


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
        """The changes from the result of `to_dict`. Raises a LexiconError if the value has another form, or a word
        cannot have its label or mode.

        Args:
            source: the path of the file, for error messages.
        """
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
