"""LexiconSnapshot: the base words and a user's changes to them at one moment; it is immutable."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import compress
from typing import Any, TypeVar, overload

import numpy as np

from cige.errors import LexiconError
from cige.lexicon.base_words import BaseWords
from cige.lexicon.matcher import without_cut_runs
from cige.lexicon.rules import NO_RULES, Rules, find_rules
from cige.lexicon.user_batch import UserBatch, listed_words, triples, user_batch
from cige.lexicon.user_store import UserStore
from cige.lexicon.user_word import BLOCKING, MODES, UserWord
from cige.text.normalize import INVISIBLE, fold_marks, normalize, without_invisible

T = TypeVar("T")


class LexiconSnapshot:
    """The words that a lexicon matches at one moment; threads may share it.

    Attributes:
        n_base: number of base words, including hidden ones; larger ids are those of user words.
        removed: ids of base words that the user removed.
        hidden: those of them that are not matched, because the user has not added them since.
    """

    def __init__(
        self,
        *,
        base: BaseWords,
        user: UserStore | None = None,
        removed: frozenset[int] = frozenset(),
        hidden: frozenset[int] = frozenset(),
    ):
        self.n_base = len(base.words)
        self.removed = removed
        self.hidden = hidden
        self._base = base
        self._user = UserStore() if user is None else user
        self._hidden_ids = np.array(sorted(hidden), dtype=np.int32)

    @cached_property
    def user_entries(self) -> UserEntries:
        """The user's words with label and mode, in the order they were added; word k has id n_base + k."""
        return UserEntries(self._user)

    @cached_property
    def user_words(self) -> UserTexts:
        """The user's words, in the order they were added."""
        return UserTexts(self._user)

    @cached_property
    def user_labels(self) -> Sequence[str | None]:
        """The label of each user word; empty if none has a label."""
        return UserLabels(self._user) if self.label_names else ()  # every lattice asks, and a tuple answers at once

    @cached_property
    def label_names(self) -> frozenset[str]:
        """The labels that user words have."""
        return frozenset(label for label in self._user.n_of_label if label is not None)

    def match(self, text: str) -> np.ndarray:
        """Every word of two or more characters in `text`, including overlapping ones but not blocked ones.

        No word begins or ends inside a run of Latin letters or of digits: AI is not found in BAIDU, nor 12 in 2012.
        Invisible characters within a word do not matter, such as a zero-width space; its row extends over them.

        Returns:
            int32[n, 3], rows (start, end, word_id) sorted by start, end, id; half-open [start, end) in code points of
            `text`. A user word that is also a base word has two rows. Any str is accepted.
        """
        text = normalize(text)
        seen = without_invisible(text)
        rows = self._base.matcher.find_whole(seen)
        if self.hidden:
            rows = rows[~np.isin(rows[:, 2], self._hidden_ids)]
        if self._user and len(user_words := without_cut_runs(self._user.nodes(seen), seen)):
            user_words[:, 2] += self.n_base
            rows = np.concatenate([rows, user_words])
            rows = rows[np.lexsort(rows.T[::-1])]
        return rows if len(seen) == len(text) else _in_text(rows, text)

    def rules(self, text: str) -> Rules:
        """Where the user's forced and blocked words are in `text`, in code points (see `find_rules`); immediate if
        there are no such words."""
        if not self._user.has_rules:
            return NO_RULES
        text = normalize(text)
        seen = without_invisible(text)
        rows, modes, labels = self._user.rule_words(seen)
        rows[:, 2] = np.arange(len(rows))
        rows = without_cut_runs(rows, seen)
        return find_rules(rows if len(seen) == len(text) else _in_text(rows, text), modes, labels)

    def word(self, word_id: int) -> str:
        """The word with this id."""
        if 0 <= word_id < self.n_base:
            return self._base.words[word_id]
        if self.n_base <= word_id < self.n_words:
            return self._user.word(word_id - self.n_base).text
        raise LexiconError(f"word id {word_id}: expected 0 to {self.n_words - 1}")

    def is_user(self, word_id: int) -> bool:
        return word_id >= self.n_base

    @property
    def n_words(self) -> int:
        """Number of ids: base words, including hidden ones, and user words."""
        return self.n_base + len(self._user)

    def __contains__(self, word: object) -> bool:
        """Whether `word` is a base word that is not hidden, or a user word, including blocked ones."""
        if not isinstance(word, str):
            return False
        word = without_invisible(normalize(word))
        number = self._base.matcher.number(word)
        return (number is not None and number not in self.hidden) or word in self._user

    def with_words(self, words: Iterable[UserWord]) -> LexiconSnapshot:
        """Like `with_batch`, for words that are normalised and valid, or were when they were saved."""
        return self.with_batch(user_batch(triples(words), was_saved=True)[0])

    def with_batch(self, batch: UserBatch, *, merges: bool = True) -> LexiconSnapshot:
        """A snapshot with additional user words. As long as they are user words, base words that the user removed are
        matched too, unless they are blocked.

        A word that is already a user word keeps its place and gets the new label and mode.

        Args:
            merges: False makes the cost depend only on the number of these words, not on that of the existing user
                words. Matching is slightly slower then, so it is used for the words of a single call.
        """
        hidden = self.hidden
        if self.removed:
            modes = dict(zip(batch.words, (MODES[mode] for mode in batch.modes.tolist()), strict=True))
            again = [(number, mode) for text, mode in modes.items() for number in self._brought_back([text])]
            blocked = {number for number, mode in again if mode in BLOCKING}
            hidden = hidden.difference(number for number, _ in again) | blocked
        return self._with(self._user.with_batch(batch, merges=merges), hidden, {})

    def without_words(self, words: Iterable[str]) -> LexiconSnapshot:
        """A snapshot that matches none of `words` (normalised), whether they are base words or user words."""
        gone = set(words)
        return self._without(gone, self._user.places(gone), gone)

    def taken_back(self, words: Iterable[str]) -> LexiconSnapshot:
        """A snapshot without `words` (normalised): what was added is as before it was added, and others are removed.
        Raises a LexiconError that lists those that are not in the lexicon."""
        gone = list(dict.fromkeys(words))
        places = self._user.places(gone)
        others = list(compress(gone, (places < 0).tolist()))
        if unknown := [word for word in others if word not in self]:
            raise LexiconError(f"cannot remove {listed_words(unknown)}: not in the lexicon")
        return self._without(gone, places, others)

    def _without(self, gone: Collection[str], places: np.ndarray, of_base: Iterable[str]) -> LexiconSnapshot:
        """A snapshot without the user words `gone`, which are at `places`, and without the base words `of_base`."""
        numbers = {word: number for word in of_base if (number := self._base.matcher.number(word)) is not None}
        hidden = self.hidden.union(numbers.values(), self._brought_back(gone))
        return self._with(self._user.without_places(places), hidden, numbers)

    def _with(self, user: UserStore, hidden: frozenset[int], removed: Mapping[str, int]) -> LexiconSnapshot:
        """A snapshot with these user words and hidden ids, and the base words `removed` (and their ids) removed too."""
        further = {word: number for word, number in removed.items() if number not in self.removed}
        numbers = self.removed.union(further.values()) if further else self.removed
        snapshot = LexiconSnapshot(base=self._base, user=user, removed=numbers, hidden=hidden)
        snapshot._marked = _with_marked(self._marked, further) if further else self._marked
        return snapshot

    @cached_property
    def _marked(self) -> dict[str, list[int]]:
        """The ids of the removed base words that users' words of another text bring back, by this text."""
        return _with_marked({}, {self._base.words[number]: number for number in self.removed})

    def _brought_back(self, words: Iterable[str]) -> Iterator[int]:
        """The ids of the removed base words that these users' words bring back, whatever their marks."""
        for text in map(fold_marks, words if self.removed else ()):
            number = self._base.matcher.number(text)
            if number is not None and number in self.removed:
                yield number
            yield from self._marked.get(text, ())


def _in_text(rows: np.ndarray, text: str) -> np.ndarray:
    """The rows (start, end, ...) of words in a text without its invisible characters, as rows of the text itself."""
    places = np.array([place for place, char in enumerate(text) if char not in INVISIBLE], rows.dtype)
    starts, ends = places[rows[:, 0]], places[rows[:, 1] - 1] + 1
    return np.column_stack([starts, ends, rows[:, 2:]])


def _with_marked(before: dict[str, list[int]], words: Mapping[str, int]) -> dict[str, list[int]]:
    """`before` and the ids of those of `words` whose text is another as a user's word, by this text."""
    ids = dict(before)
    for word, number in words.items():
        if (text := fold_marks(word)) != word:
            ids[text] = [*ids.get(text, ()), number]
    return ids


class _Lazy(Sequence[T]):
    """What a UserStore has of each word, read when it is asked for; equal to another sequence of the same values."""

    def __init__(self, store: UserStore) -> None:
        self._store = store

    @abstractmethod
    def _item(self, number: int) -> T: ...

    def __len__(self) -> int:
        return len(self._store)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        if isinstance(index, slice):
            return tuple(self._item(k) for k in range(*index.indices(len(self))))
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(f"word {index} of {len(self)}")
        return self._item(number)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(item == theirs for item, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # as of a list: it may be long

    def __add__(self, other: Sequence[T]) -> tuple[T, ...]:
        return (*self, *other)

    def __radd__(self, other: Sequence[T]) -> tuple[T, ...]:
        return (*other, *self)

    def __repr__(self) -> str:
        shown = tuple(self[:20])
        return repr(shown) if len(self) <= len(shown) else f"{repr(shown)[:-1]}, ...{len(self):,} in all)"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._store,)


class UserEntries(_Lazy[UserWord]):
    """The words with labels and modes, in the order in which they were added."""

    def _item(self, number: int) -> UserWord:
        return self._store.word(number)

    def __iter__(self) -> Iterator[UserWord]:
        return iter(self._store)


class UserTexts(_Lazy[str]):
    """The words, in the order in which they were added; `in` takes the same time for any number of words."""

    def _item(self, number: int) -> str:
        return self._store.word(number).text

    def __iter__(self) -> Iterator[str]:
        return self._store.texts()

    def __contains__(self, word: object) -> bool:
        return word in self._store


class UserLabels(_Lazy[str | None]):
    """The label of each word."""

    def _item(self, number: int) -> str | None:
        return self._store.label(number)

    def __iter__(self) -> Iterator[str | None]:
        return (word.label for word in self._store)
