"""LexiconSnapshot: the base words and a user's changes to them at one moment; it is immutable."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cige.errors import LexiconError
from cige.lexicon.base_words import BaseWords
from cige.lexicon.latin_runs import without_cut_runs
from cige.lexicon.matcher import Matcher
from cige.lexicon.rules import NO_RULES, RuleBook, Rules
from cige.lexicon.user_word import BLOCKING, EVIDENCE, UserWord
from cige.text.normalize import normalize


@dataclass(frozen=True)
class _UserMatcher:
    """Finds some of the user's words: those with the ids int32[n], in the order of the matcher's numbers."""

    matcher: Matcher
    ids: np.ndarray

    @classmethod
    def build(cls, entries: Sequence[UserWord], places: Sequence[int], *, n_base: int) -> _UserMatcher | None:
        """A matcher of the entries at `places`; None for none."""
        if not places:
            return None
        return cls(Matcher.build([entries[k].text for k in places]), np.array(places, np.int32) + np.int32(n_base))

    def find(self, text: str) -> np.ndarray:
        """int32[n, 3] rows (start, end, id)."""
        rows = self.matcher.find(text)
        rows[:, 2] = self.ids[rows[:, 2]]
        return rows


class LexiconSnapshot:
    """The words that a lexicon matches at one moment; threads may share it.

    Attributes:
        n_base: number of base words, including hidden ones; larger ids are those of user words.
        user_entries: the user's words with label and mode, in the order they were added; word k has id n_base + k.
        removed: ids of base words that the user removed.
        hidden: those of them that are not matched, because the user has not added them since.
    """

    def __init__(
        self,
        *,
        base: BaseWords,
        user_entries: tuple[UserWord, ...] = (),
        removed: frozenset[int] = frozenset(),
        hidden: frozenset[int] = frozenset(),
        _below: LexiconSnapshot | None = None,
    ):
        self.n_base = len(base.words)
        self.user_entries = user_entries
        self.removed = removed
        self.hidden = hidden
        self._base = base
        found_below = () if _below is None else _below._user
        known = {k for matcher in found_below for k in (matcher.ids - self.n_base).tolist()}
        nodes = [k for k, word in enumerate(user_entries) if word.is_node and k not in known]
        own = _UserMatcher.build(user_entries, nodes, n_base=self.n_base)
        self._user: tuple[_UserMatcher, ...] = found_below + (() if own is None else (own,))
        gone = sorted(k for k in known if not user_entries[k].is_node)
        self._gone_ids = np.array(gone, dtype=np.int32) + np.int32(self.n_base)
        self._hidden_ids = np.array(sorted(hidden), dtype=np.int32)
        self._has_rules = any(word.mode != EVIDENCE for word in user_entries)

    @cached_property
    def user_words(self) -> tuple[str, ...]:
        """The user's words, in the order they were added."""
        return tuple(word.text for word in self.user_entries)

    @cached_property
    def user_labels(self) -> tuple[str | None, ...]:
        """The label of each user word; empty if none has a label."""
        labels = tuple(word.label for word in self.user_entries)
        return labels if any(label is not None for label in labels) else ()

    def match(self, text: str) -> np.ndarray:
        """Every word of two or more characters in `text`, including overlapping ones but not blocked ones.

        No word begins or ends inside a run of Latin letters or of digits: AI is not found in BAIDU, nor 12 in 2012.

        Returns:
            int32[n, 3], rows (start, end, word_id) sorted by start, end, id; half-open [start, end) in code points of
            `text`. A user word that is also a base word has two rows. Any str is accepted.
        """
        text = normalize(text)
        rows = self._base.matcher.find(text)
        if self.hidden:
            rows = rows[~np.isin(rows[:, 2], self._hidden_ids)]
        own = [found for matcher in self._user if len(found := matcher.find(text))]
        if own:
            rows = np.concatenate([rows, *own])
            if len(self._gone_ids):
                rows = rows[~np.isin(rows[:, 2], self._gone_ids)]
            rows = rows[np.lexsort(rows.T[::-1])]
        return without_cut_runs(rows, text)

    def rules(self, text: str) -> Rules:
        """Where the user's forced and blocked words are in `text`, in code points; immediate if there are no such
        words.

        If forced words overlap, the longest is chosen, or the first of the longest.
        """
        return self._rule_book.find(normalize(text)) if self._has_rules else NO_RULES

    def word(self, word_id: int) -> str:
        """The word with this id."""
        if 0 <= word_id < self.n_base:
            return self._base.words[word_id]
        if self.n_base <= word_id < self.n_words:
            return self.user_entries[word_id - self.n_base].text
        raise LexiconError(f"word id {word_id}: expected 0 to {self.n_words - 1}")

    def is_user(self, word_id: int) -> bool:
        return word_id >= self.n_base

    @property
    def n_words(self) -> int:
        """Number of ids: base words, including hidden ones, and user words."""
        return self.n_base + len(self.user_entries)

    def __contains__(self, word: object) -> bool:
        """Whether `word` is a base word that is not hidden, or a user word, including blocked ones."""
        if not isinstance(word, str):
            return False
        word = normalize(word)
        number = self._base.matcher.number(word)
        return (number is not None and number not in self.hidden) or word in self._user_places

    def with_words(self, words: Iterable[UserWord]) -> LexiconSnapshot:
        """A snapshot with additional user words (normalised and valid). As long as they are user words, base words that
        the user removed are matched too, unless they are blocked.

        A word that is already a user word keeps its place and gets the new label and mode.
        """
        return self._with_words(words, below=None)

    def overlaid(self, words: Iterable[UserWord]) -> LexiconSnapshot:
        """Like `with_words`, at a cost that depends mainly on the number of `words`, not on the existing user words.

        Matching is slightly slower, so it is used for the words of a single call.
        """
        return self._with_words(words, below=self)

    def _with_words(self, words: Iterable[UserWord], *, below: LexiconSnapshot | None) -> LexiconSnapshot:
        changed = {word.text: word for word in words}
        kept = {word.text: word for word in self.user_entries}
        removed = {text: number for text in changed if (number := self._removed_number(text)) is not None}
        blocked = {number for text, number in removed.items() if changed[text].mode in BLOCKING}
        return LexiconSnapshot(
            base=self._base,
            user_entries=tuple((kept | changed).values()),
            removed=self.removed,
            hidden=self.hidden.difference(removed.values()) | blocked,
            _below=below,
        )

    def without_words(self, words: Iterable[str]) -> LexiconSnapshot:
        """A snapshot that matches none of `words` (normalised), whether they are base words or user words."""
        gone = set(words)
        numbers = {number for word in gone if (number := self._base.matcher.number(word)) is not None}
        return LexiconSnapshot(
            base=self._base,
            user_entries=tuple(word for word in self.user_entries if word.text not in gone),
            removed=self.removed | numbers,
            hidden=self.hidden | numbers,
        )

    def taken_back(self, words: Iterable[str]) -> LexiconSnapshot:
        """A snapshot without `words` (normalised): what was added is as before it was added, and others are removed."""
        gone = set(words)
        numbers = {word: number for word in gone if (number := self._base.matcher.number(word)) is not None}
        removed = self.removed.union(number for word, number in numbers.items() if word not in self._user_places)
        return LexiconSnapshot(
            base=self._base,
            user_entries=tuple(word for word in self.user_entries if word.text not in gone),
            removed=removed,
            hidden=self.hidden | removed.intersection(numbers.values()),
        )

    def _removed_number(self, word: str) -> int | None:
        """The id of a base word that the user removed, whether or not it was added since; None for others."""
        number = self._base.matcher.number(word) if self.removed else None
        return number if number in self.removed else None

    @cached_property
    def _user_places(self) -> dict[str, int]:
        return {word.text: k for k, word in enumerate(self.user_entries)}

    @cached_property
    def _rule_book(self) -> RuleBook:
        return RuleBook(self.user_entries)
