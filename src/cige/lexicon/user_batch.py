"""UserBatch: the words of a call with their labels and modes, checked and without an object per word."""

from __future__ import annotations

import warnings
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from cige.errors import LexiconError, WordListWarning
from cige.lexicon.packed_words import PackedWords
from cige.lexicon.user_word import (
    EVIDENCE,
    MODES,
    NO_LABEL,
    Mode,
    UserWord,
    UserWords,
    each_user_word,
    is_usable,
    reason_to_refuse_user_word,
)
from cige.lexicon.word_blob import WordBlob
from cige.lexicon.word_rules import CONTRADICTION, MAX_WORD_CHARS
from cige.text.normalize import normalize_word

WordTriple = tuple[str, str | None, str]  # text, label and mode
_AT_ONCE = 4096
_N_LISTED = 10


@dataclass(frozen=True)
class UserBatch:
    """Words as they were given, so some may be equal.

    Attributes:
        words: the n words, as by `normalize_word`.
        labels: uint32[n], indices in `names`, the first of which is None.
        modes: uint8[n], indices in MODES.
    """

    words: WordBlob
    labels: np.ndarray
    modes: np.ndarray
    names: tuple[str | None, ...]

    def __len__(self) -> int:
        return len(self.words)


def user_batch(words: Iterable[WordTriple], *, was_saved: bool = False) -> tuple[UserBatch, list[str]]:
    """Pack words; returns them, and those that cannot be used with the reason, for a message.

    Words are read one after the other, and nothing of a word is kept but its text and two numbers. Raises a
    LexiconError if a text, label or mode is no string. `was_saved` as in `reason_to_refuse_user_word`.
    """
    blob, labels, modes = bytearray(), array("I"), bytearray()
    numbers: dict[str | None, int] = {None: 0}
    numbers_of: dict[tuple[str | None, str], tuple[int, int] | None] = {}  # None: no word can have both
    problems: list[str] = []
    given = iter(words)
    while chunk := list(islice(given, _AT_ONCE)):
        accepted = []
        try:
            for text, (_, label, mode) in zip(normalised([text for text, _, _ in chunk]), chunk, strict=True):
                key = label, mode
                if key not in numbers_of:
                    numbers_of[key] = _numbers(label, mode, numbers, was_saved)
                verdict = numbers_of[key]
                # `reason_to_refuse` has nothing against words of letters and digits, which are nearly all.
                if verdict is None or not (2 <= len(text) <= MAX_WORD_CHARS and text.isalnum()):
                    word = UserWord(text, label, mode)  # type: ignore[arg-type]
                    reason = reason_to_refuse_user_word(word, was_saved=was_saved)
                    if reason is not None or verdict is None:
                        problems.append(f"{text!r} ({reason})")
                        continue
                accepted.append(text)
                labels.append(verdict[0])
                modes.append(verdict[1])
        except TypeError:
            _check_types(chunk)
            raise
        blob += "\n".join([*accepted, ""]).encode("utf-8") if accepted else b""
    arrays = np.frombuffer(labels, np.uint32), np.frombuffer(modes, np.uint8)
    batch = UserBatch(WordBlob.of_lines(blob), *arrays, tuple(numbers))
    return batch, problems


def usable(words: Iterable[WordTriple]) -> UserBatch:
    """The words, packed. A word that is given again with another label or mode keeps the first, as in files.

    Warns:
        WordListWarning: words are given again with another label or mode.

    Raises:
        LexiconError: some cannot be used; the message lists them.
    """
    batch, problems = user_batch(words)
    if problems:
        raise LexiconError(f"cannot add {listed_words(problems)}")
    return _without_contradictions(batch)


def _without_contradictions(batch: UserBatch) -> UserBatch:
    """The words with the first label and mode that each was given; a warning names those that were given others."""
    facts = batch.labels.astype(np.int64) * len(MODES) + batch.modes
    if not len(facts) or (facts == facts[0]).all():
        return batch
    first = PackedWords.build(batch.words)[1]
    if first is None or not (differs := facts != facts[first]).any():
        return batch
    again = list(dict.fromkeys(batch.words[k] for k in np.flatnonzero(differs).tolist()))
    warnings.warn(
        f"{listed_words(list(map(repr, again)))}: {CONTRADICTION}; the first label and mode are used",
        WordListWarning,
        stacklevel=4,  # of `lexicon.add(words)`
    )
    return UserBatch(batch.words, batch.labels[first], batch.modes[first], batch.names)


def usable_alike(words: Sequence[str], label: str | None, mode: Mode) -> UserBatch:
    """Like `usable`, for words with one label and mode."""
    batch, problems = user_batch((word, label, mode) for word in strings(words))
    if problems:
        given = f" with label {label!r} and mode {mode!r}" if label is not None or mode != EVIDENCE else ""
        raise LexiconError(
            f"cannot add {listed_words(problems)}{given}; a word has 2 to {MAX_WORD_CHARS} characters and no "
            'blank at its edges; one of a single character needs mode "force" with a label, or mode "block" or '
            '"block_exact"'
        )
    return batch


def strings(words: Sequence[str]) -> Sequence[str]:
    """The words; raises a LexiconError if one is not a str."""
    for word in words:
        if not isinstance(word, str):
            raise LexiconError(f"expected words, got {type(word).__name__}: put a * before a list of words")
    return words


def plain_strings(words: UserWords) -> list[str]:
    """The strings of a list; raises a LexiconError for words that may have labels and modes of their own."""
    if isinstance(words, Iterable) and not isinstance(words, Mapping | bytes):
        listed = list(words)
        if not any(isinstance(word, UserWord) for word in listed):
            return [text for text, _, _ in each_user_word(listed)]
    raise LexiconError(
        "add: label=, mode= and inside= are for strings, one by one or in a list, and for tables; a dict has its own "
        "labels, and UserWords also have their own modes, so leave these out"
    )


def texts_of_call(words: Sequence[str | UserWords]) -> list[str]:
    """The words of a call that gives them one by one, or as one list, dict or table."""
    if len(words) == 1 and not isinstance(words[0], str):
        return [text for text, _, _ in each_user_word(words[0])]
    return list(strings(words))  # type: ignore[arg-type]


def listed_words(items: Sequence[str]) -> str:
    """The first words of a list, for a message."""
    more = f" and {len(items) - _N_LISTED:,} more" if len(items) > _N_LISTED else ""
    return ", ".join(items[:_N_LISTED]) + more


def check_label_and_mode(label: str | None, mode: str) -> None:
    """Raise a LexiconError if no word of a file can have this label and mode, which are for those without their own."""
    word = UserWord("甲乙", label, mode)  # type: ignore[arg-type]  # an ordinary word
    _check_types([(word.text, label, mode)])
    problem = reason_to_refuse_user_word(word)
    if problem not in (None, NO_LABEL):
        raise LexiconError(f"label={label!r}, mode={mode!r}: {problem}")


def triples(words: Iterable[UserWord]) -> Iterator[WordTriple]:
    return ((word.text, word.label, word.mode) for word in words)


def _check_types(words: Sequence[WordTriple]) -> None:
    for text, label, mode in words:
        if not isinstance(text, str):
            raise LexiconError(f"a word is {type(text).__name__}: expected a string")
        if label is not None and not isinstance(label, str):
            raise LexiconError(f"label is {type(label).__name__}: expected a string such as 'PRODUCT', or None")
        if not isinstance(mode, str):
            raise LexiconError(f"mode is {type(mode).__name__}: expected one of {', '.join(MODES)}")


def _numbers(label: str | None, mode: str, numbers: dict[str | None, int], was_saved: bool) -> tuple[int, int] | None:
    """The numbers of a label and a mode, or None if no word can have both."""
    if not is_usable(label, mode, was_saved=was_saved):
        return None
    return numbers.setdefault(label, len(numbers)), MODES.index(mode)  # type: ignore[arg-type]


def normalised(texts: Collection[str], form: Callable[[str], str] = normalize_word) -> list[str]:
    """Each text in this form; all at once if that is possible, which is faster."""
    joined = "\n".join(texts)
    if joined.count("\n") != len(texts) - 1:
        return list(map(form, texts))
    return form(joined).split("\n")
