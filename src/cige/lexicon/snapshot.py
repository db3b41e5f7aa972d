"""LexiconSnapshot: base words and a user's changes to them at one moment; it never changes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from cige.errors import LexiconError
from cige.lexicon.base_words import BaseWords
from cige.lexicon.matcher import Matcher
from cige.text.normalize import normalize

_NONE = np.empty((0, 3), dtype=np.int32)


class LexiconSnapshot:
    """What a lexicon matches at one moment; safe to share between threads.

    Attributes:
        n_base: number of base words, hidden ones included; ids from here on are a user's own words.
        user_words: the user's words, in the order they were added; word k has id n_base + k.
        hidden: ids of base words that the user removed.
    """

    def __init__(self, *, base: BaseWords, user_words: tuple[str, ...] = (), hidden: frozenset[int] = frozenset()):
        self.n_base = len(base.words)
        self.user_words = user_words
        self.hidden = hidden
        self._base = base
        self._user = Matcher.build(user_words) if user_words else None
        self._hidden_ids = np.array(sorted(hidden), dtype=np.int32)

    def match(self, text: str) -> np.ndarray:
        """Every word of two or more characters in `text`, overlaps included.

        Returns:
            int32[n, 3], rows (start, end, word_id) sorted by start, end, id; half-open [start, end) in code points
            of `text`. A user's word that is a base word too gives two rows. Never raises on any str.
        """
        text = normalize(text)
        rows = self._base.matcher.find(text)
        if self.hidden:
            rows = rows[~np.isin(rows[:, 2], self._hidden_ids)]
        own = self._user.find(text) if self._user is not None else _NONE
        if not len(own):
            return rows
        own[:, 2] += self.n_base
        rows = np.concatenate([rows, own])
        return rows[np.lexsort(rows.T[::-1])]

    def word(self, word_id: int) -> str:
        """The word behind an id of this snapshot."""
        if 0 <= word_id < self.n_base:
            return self._base.words[word_id]
        if self.n_base <= word_id < self.n_words:
            return self.user_words[word_id - self.n_base]
        raise LexiconError(f"word id {word_id}: expected 0 to {self.n_words - 1}")

    def is_user(self, word_id: int) -> bool:
        return word_id >= self.n_base

    @property
    def n_words(self) -> int:
        """Number of ids: base words, hidden ones included, and the user's."""
        return self.n_base + len(self.user_words)

    def __contains__(self, word: object) -> bool:
        """Whether `word`, standing alone, would be matched."""
        if not isinstance(word, str):
            return False
        word = normalize(word)
        number = self._base.matcher.number(word)
        return (number is not None and number not in self.hidden) or word in self._user_set

    def with_words(self, words: Iterable[str]) -> LexiconSnapshot:
        """A snapshot where `words` (normalised, sound) are the user's, and visible if they are base words too."""
        words = dict.fromkeys(words)
        found = map(self._base.matcher.number, words)
        return LexiconSnapshot(
            base=self._base,
            user_words=tuple(dict.fromkeys((*self.user_words, *words))),
            hidden=self.hidden.difference(number for number in found if number is not None),
        )

    def without_words(self, words: Iterable[str]) -> LexiconSnapshot:
        """A snapshot that matches none of `words` (normalised), whoever they came from."""
        gone = set(words)
        found = map(self._base.matcher.number, gone)
        return LexiconSnapshot(
            base=self._base,
            user_words=tuple(word for word in self.user_words if word not in gone),
            hidden=self.hidden.union(number for number in found if number is not None),
        )

    @cached_property
    def _user_set(self) -> frozenset[str]:
        return frozenset(self.user_words)
