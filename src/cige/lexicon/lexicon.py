"""Lexicon: words that are matched in texts, built or loaded once, to which users add their own words at any time."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

import cige.lexicon
from cige.errors import LexiconError
from cige.folders.hub import is_bundled
from cige.folders.kinds import LEXICON
from cige.lexicon.base_words import BaseWords
from cige.lexicon.packed_words import give_memory_back
from cige.lexicon.snapshot import LexiconSnapshot, UserEntries, UserTexts
from cige.lexicon.storage import CHECKED_BYTES, new_folder, open_folder
from cige.lexicon.user_batch import (
    UserBatch,
    check_label_and_mode,
    normalised,
    plain_strings,
    texts_of_call,
    triples,
    usable,
    usable_alike,
    user_batch,
)
from cige.lexicon.user_word import (
    BLOCK,
    BLOCK_EXACT,
    COMMON_TYPES,
    EVIDENCE,
    Mode,
    UserChanges,
    UserWord,
    UserWords,
    completed,
    each_user_word,
)
from cige.lexicon.word_blob import WordBlob
from cige.lexicon.word_rules import DUPLICATE, reason_to_refuse
from cige.text.counted import counted
from cige.text.given import check_text, is_table
from cige.text.normalize import normalize, without_invisible

_MANY = 100_000  # words of a call


class Lexicon:
    """Base words, which are fixed and numbered, and user words.

    `add` and `remove` take effect immediately and never change the base words: they replace the immutable
    `LexiconSnapshot`, so a thread that holds a snapshot never sees a partial update. All methods are thread-safe.

    A user word that is also a base word is matched twice, with both ids. `remove` undoes the `add` of a user word, and
    hides a base word that was not added; `add` makes a word a user word and shows a hidden base word for as long as it
    is one. Ids of user words are valid for one snapshot.

    Attributes:
        report: which words were taken and refused when it was built; None for a loaded lexicon.
    """

    def __init__(self, *, base: BaseWords, report: cige.lexicon.LoadReport | None = None) -> None:
        self.report = report
        self._base = base
        self._lock = threading.Lock()
        self._snapshot = LexiconSnapshot(base=base)

    @classmethod
    def from_words(cls, words: Iterable[str], *, counts: Iterable[int] | None = None, spaces: bool = False) -> Lexicon:
        """Build from words in memory; ids are in their order. `report` lists refused words by their position, from 1.

        Args:
            spaces: whether words may contain spaces.

        Raises:
            LexiconError: `words` is a string or has something else than strings, or `counts` does not have one number
                per word.
        """
        if isinstance(words, str):
            raise LexiconError(f"from_words({words!r}): expected a list of words, not a string")
        words = list(words)
        for place, word in enumerate(words, start=1):
            if not isinstance(word, str):
                raise LexiconError(f"from_words: word {place} is {type(word).__name__}; expected a string")
        given = [1] * len(words) if counts is None else list(counts)
        if len(given) != len(words):
            n_given, n_words = counted(len(given), "count"), counted(len(words), "word")
            raise LexiconError(f"{n_given} for {n_words}: expected one per word")
        from cige.lexicon.report import ReportBuilder

        report = ReportBuilder(source="words", format="words")
        taken: dict[str, int] = {}
        forms = (without_invisible(normalize(word)) for word in words)
        for line, (word, count) in enumerate(zip(forms, given, strict=True), start=1):
            problem = reason_to_refuse(word, spaces=spaces) or (DUPLICATE if word in taken else None)
            if problem:
                report.refuse(line, word, problem)
            else:
                taken[word] = count
        kept_counts = None if counts is None else list(taken.values())
        base = BaseWords.build(WordBlob.from_words(taken), kept_counts)
        return cls(base=base, report=report.build(n_taken=len(taken)))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], *, format: str = "auto", min_count: int = 0) -> Lexicon:
        """Build from a word list (see `words_file.read_words` for the formats); `report` lists the refused lines.

        The file is read as by `add_file`, except that lines with a word, a space and a number are words with counts.
        Base words have neither label nor mode: labels in the file are ignored, and words with mode force or block
        become user words, as if they had been added.

        Raises:
            LexiconError: the file cannot be read, or none of its words can be used.
        """
        from cige.lexicon.words_file import read_words  # not needed to match

        word_list = read_words(path, format=format, min_count=min_count, spaces=True, pairs=True)
        word_list.check()
        rules = [word for word in word_list.triples() if word[2] != EVIDENCE]
        listed, counts, report = word_list.words, word_list.counts, word_list.report
        if rules:
            keep = [mode == EVIDENCE for _, mode in word_list.of_words]
            listed = list(compress(listed, keep))
            counts = counts and list(compress(counts, keep))
        words = WordBlob.from_words(listed)
        del word_list, listed  # for millions of words, this frees a gigabyte, and building needs another
        lexicon = cls(base=BaseWords.build(words, counts), report=report)
        lexicon._add(usable(rules))
        return lexicon

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Lexicon:
        """Open a saved lexicon: its words, counts and trie are mapped from disk, and processes share them.

        Of files of more than 32 MB and of those of the bundled model only the size is checked; `check_lexicon` reads
        every file.

        Raises:
            LexiconError: a file is missing, truncated, changed or not of a lexicon.
        """
        folder = Path(folder)
        facts = open_folder(folder, kind=LEXICON, check_up_to=0 if is_bundled(folder) else CHECKED_BYTES)
        lexicon = cls(base=BaseWords.load(folder, facts))
        changes = UserChanges.load(folder)
        return lexicon.changed(changes) if changes else lexicon

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the base words and the user's changes into a folder, completely or not at all.

        If the folder already holds vectors of these words, they are kept; a new folder has none.

        Raises:
            LexiconError: the folder holds something else, or vectors of other words, or writing failed; the previous
                content is kept.
        """
        from cige.lexicon.vectors import keep_vectors

        snapshot = self.snapshot()
        with new_folder(folder, kind=LEXICON) as (aside, facts):
            facts.update(self._base.save(aside), vectors=keep_vectors(Path(folder), aside, self.fingerprint))
            UserChanges(snapshot.user_entries, self._words_of(snapshot.removed)).save(aside)

    @property
    def fingerprint(self) -> str:
        """Sha256 of the base words in order, without the user's words."""
        return self._base.words.sha256

    @property
    def words(self) -> WordBlob:
        """The base words, indexed by id."""
        return self._base.words

    @property
    def user_words(self) -> UserTexts:
        """The user's words, in the order they were added: a sequence that reads them when they are asked for."""
        return self._snapshot.user_words

    @property
    def user_entries(self) -> UserEntries:
        """The user's words with their labels and modes: a sequence that reads them when they are asked for."""
        return self._snapshot.user_entries

    @property
    def user_label_names(self) -> frozenset[str]:
        """The labels that user words have; immediate for any number of words."""
        return self._snapshot.label_names

    @property
    def removed_words(self) -> tuple[str, ...]:
        """Base words that the user removed and has not added since, in order of id."""
        return self._words_of(self._snapshot.hidden)

    def _words_of(self, ids: frozenset[int]) -> tuple[str, ...]:
        return tuple(self._base.words[word_id] for word_id in sorted(ids))

    def snapshot(self) -> LexiconSnapshot:
        """The words that are matched now. The snapshot does not change when words are added or removed later."""
        return self._snapshot

    def match(self, text: str) -> np.ndarray:
        """int32[n, 3] rows (start, end, word_id); see `LexiconSnapshot.match`. Raises a TypeError if it is no str."""
        check_text(text)
        return self._snapshot.match(text)

    def add(
        self, *words: str | UserWords, label: str | None = None, mode: Mode = EVIDENCE, inside: bool = False
    ) -> None:
        """Add user words, which are matched from now on.

        `add("小米", "华为", label="COMPANY")`, or the same with a list of words, adds words with one label and mode.
        `add({"小米": "COMPANY"})`, a list of `UserWord`s, or a DataFrame with the columns word, label and mode adds
        words with labels of their own. `mode` may also be given with a dict, and `label` and `mode` with a DataFrame,
        for the rows that have none.

        Words may contain spaces and punctuation ("iPhone 15 Pro"). A word that has already been added keeps its place
        and gets the label and the mode of this call. In one call, a word that is given again with another label or mode
        keeps the first, as in a file, and a `WordListWarning` names it.

        Args:
            label: the entity type that the words name, whether or not the model knows it; None if it is unknown.
            mode: "evidence": the model considers words and label together with the rest of the text, and may decide
                against both. "type": the model decides whether a word is an entity; if it is, its type is `label`.
                "force": the words are tagged with `label` wherever they occur; if two overlap, the longer one is
                tagged. "block": neither these words nor anything inside them is an entity; they may be part of a
                longer one that the model finds without this rule. "block_exact": as "block", but what lies inside them
                may be an entity.
            inside: with mode "block": whether what lies inside the words may be an entity; the same as "block_exact".

        Raises:
            TypeError: of two words, the second is a type such as "PER"; labels are given with `label=`.
            LexiconError: a word cannot be used (it is empty, begins or ends with a space, contains a control character,
                has more than 64 characters, or is a single character with mode "evidence"), or the label or the mode is
                not valid. The message lists the words, and none is added.
        """
        if len(words) == 2 and isinstance(words[1], str) and words[1] in COMMON_TYPES:
            raise TypeError(f"add{words!r} would add two words; for a word with a type, write label={words[1]!r}")
        if inside:
            if mode != BLOCK:
                raise LexiconError(f"inside=True was given with mode {mode!r}; it says what mode 'block' leaves alone")
            mode = BLOCK_EXACT
        is_list = len(words) == 1 and not isinstance(words[0], str)
        if is_list and label is None and mode == EVIDENCE:
            self._add(usable(each_user_word(words[0])))
        elif is_list and label is None and isinstance(words[0], Mapping):
            self._add(usable((text, own_label, mode) for text, own_label, _ in each_user_word(words[0])))
        elif is_list and is_table(words[0]):
            self._add(usable(completed(each_user_word(words[0]), label, mode)))
        else:
            self._add(usable_alike(plain_strings(words[0]) if is_list else words, label, mode))  # type: ignore[arg-type]

    def add_entries(self, *words: UserWord) -> None:
        """Like `add`, for words that have their own labels and modes, such as another lexicon's `user_entries`.

        Raises:
            LexiconError: some words cannot be used; the message lists them, and none is added.
        """
        self._add(usable(triples(words)))

    def add_file(
        self,
        path: str | os.PathLike[str],
        *,
        format: str = "auto",
        label: str | None = None,
        mode: Mode = EVIDENCE,
    ) -> cige.lexicon.LoadReport:
        """Add the words of a file, with labels and modes if it has them; see `words_file.read_words` for the formats.

        Lines that cannot be used are listed in the report with the reason, and the others are added.

        Args:
            label: the label of words for which the file has none, except of blocked words.
            mode: the mode of words for which the file has none, or has "evidence".

        Raises:
            LexiconError: the file cannot be read, or no word can have the label and the mode.
        """
        from cige.lexicon.words_file import read_words

        check_label_and_mode(label, mode)
        listed = read_words(path, format=format, spaces=True, label=label, mode=mode)
        self._add(user_batch(listed.triples())[0])  # each can be used, and is listed once
        return listed.report

    def remove(self, *words: str | UserWords) -> None:
        """Undo `add` of user words, and stop matching base words, from now on.

        `remove("小米", "华为")`, or one list, dict or DataFrame of words, as for `add`; their labels do not matter.

        A user word is as it was before it was added, whatever labels and modes it was given since: gone, or the base
        word that it also is. Removing that base word takes a call of its own.

        Raises:
            LexiconError: some words are not in the lexicon; the message lists them, and none is removed.
        """
        wanted = normalised(texts_of_call(words), lambda text: without_invisible(normalize(text)))
        with self._lock:
            self._snapshot = self._snapshot.taken_back(wanted)

    def changed(self, changes: UserChanges) -> Lexicon:
        """A lexicon with the same base words and the current user words, to which `changes` are applied.

        This lexicon does not change. Words to remove are no longer matched, whether they are base words, user words or
        both, unless `changes` adds them; words that are not in the lexicon are ignored.
        """
        return self._with(self._snapshot.without_words(changes.removed).with_words(changes.added))

    def with_words(self, words: UserWords) -> Lexicon:
        """A lexicon with additional user words, at a cost that depends only on `words`; this lexicon does not change.

        Args:
            words: strings, `UserWord`s with label and mode, or a dict of words and labels (None for no label).

        Raises:
            LexiconError: some words cannot be used; the message lists them.
        """
        return self._with(self._snapshot.with_batch(usable(each_user_word(words)), merges=False))

    def _add(self, batch: UserBatch) -> None:
        with self._lock:
            self._snapshot = self._snapshot.with_batch(batch)
        if len(batch) >= _MANY:
            give_memory_back()  # packing takes for a moment as much memory as the packed words

    def _with(self, snapshot: LexiconSnapshot) -> Lexicon:
        lexicon = Lexicon(base=self._base, report=self.report)
        lexicon._snapshot = snapshot
        return lexicon

    def word(self, word_id: int) -> str:
        """The word with this id in the current snapshot."""
        return self._snapshot.word(word_id)

    def id(self, word: str) -> int | None:
        """The id of a base word, whether it is hidden or not; None if there is no such word."""
        return self._base.matcher.number(normalize(word))

    def count(self, word_id: int) -> int | None:
        """The count of a base word in its word list; None for a user word or if the list has no counts."""
        counts = self._base.counts
        return int(counts[word_id]) if counts is not None and 0 <= word_id < len(counts) else None

    def __len__(self) -> int:
        """Number of base words."""
        return len(self._base.words)

    def __iter__(self) -> Iterator[str]:
        """Base words in order of id."""
        return iter(self._base.words)

    def __contains__(self, word: object) -> bool:
        return word in self._snapshot

    def __repr__(self) -> str:
        now = self._snapshot
        n_words, n_own = counted(len(self), "word"), counted(len(now.user_words), "user word")
        return f"Lexicon({n_words}, {n_own}, {len(now.hidden):,} removed)"

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}  # a lock cannot be pickled

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())
