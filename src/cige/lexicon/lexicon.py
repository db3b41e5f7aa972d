"""Lexicon: words that are matched in a text; built or loaded once, and changed by its user while running."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cige.errors import LexiconError
from cige.folders.kinds import LEXICON
from cige.json_text import to_json
from cige.lexicon.base_words import BaseWords
from cige.lexicon.report import LoadReport, ReportBuilder
from cige.lexicon.snapshot import LexiconSnapshot
from cige.lexicon.storage import CHECKED_BYTES, new_folder, open_folder
from cige.lexicon.vectors import keep_vectors
from cige.lexicon.word_blob import WordBlob
from cige.lexicon.word_rules import DUPLICATE, reason_to_refuse
from cige.lexicon.words_file import read_words
from cige.text.normalize import normalize

USER_FILE = "user.json"


class Lexicon:
    """Base words, fixed and numbered, and a user's own words on top.

    `add` and `remove` take effect at once and never touch the base: they put a new immutable `LexiconSnapshot` in
    place, so a thread that holds a snapshot never sees half an update. All methods may be called from any thread.

    A user's word that is a base word too is matched twice, with both ids. `remove` hides a word whoever it came from;
    `add` makes it the user's and lets the base word be seen again. User ids hold for one snapshot.

    Attributes:
        report: what building took and refused; None for a loaded lexicon.
    """

    def __init__(self, *, base: BaseWords, report: LoadReport | None = None) -> None:
        self.report = report
        self._base = base
        self._lock = threading.Lock()
        self._snapshot = LexiconSnapshot(base=base)

    @classmethod
    def from_words(cls, words: Iterable[str], *, counts: Iterable[int] | None = None) -> Lexicon:
        """Build from words in memory; ids follow their order. `report` tells which were refused, by position from 1.

        Raises:
            LexiconError: `words` is one string, or `counts` is not one number a word.
        """
        if isinstance(words, str):
            raise LexiconError(f"from_words({words!r}): expected a list of words, not one string")
        words = list(words)
        given = [1] * len(words) if counts is None else list(counts)
        if len(given) != len(words):
            raise LexiconError(f"{len(given):,} counts for {len(words):,} words: expected one a word")
        report = ReportBuilder(source="words", format="words")
        taken: dict[str, int] = {}
        for line, (word, count) in enumerate(zip(map(normalize, words), given, strict=True), start=1):
            problem = reason_to_refuse(word) or (DUPLICATE if word in taken else None)
            if problem:
                report.refuse(line, word, problem)
            else:
                taken[word] = count
        kept_counts = None if counts is None else list(taken.values())
        base = BaseWords.build(WordBlob.from_words(taken), kept_counts)
        return cls(base=base, report=report.build(n_taken=len(taken)))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], *, format: str = "auto", min_count: int = 0) -> Lexicon:
        """Build from a word list (see `words_file.read_words` for the formats); `report` tells what was refused.

        Raises:
            LexiconError: the file cannot be read, or not one of its words can be used.
        """
        found = read_words(path, format=format, min_count=min_count)
        if not found.words:
            raise LexiconError(f"no word to use; expected words of two or more characters, one a line\n{found.report}")
        words, counts, report = WordBlob.from_words(found.words), found.counts, found.report
        del found  # a gigabyte for millions of words, and building needs another
        return cls(base=BaseWords.build(words, counts), report=report)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Lexicon:
        """Open a saved lexicon: words, counts and the trie stay on disk, mapped, and processes share them.

        Files of more than 32 MB are not read for it, so of these only the size is checked; `check_lexicon` reads all.

        Raises:
            LexiconError: a file is missing, cut short, changed or foreign.
        """
        folder = Path(folder)
        facts = open_folder(folder, kind=LEXICON, check_up_to=CHECKED_BYTES)
        lexicon = cls(base=BaseWords.load(folder, facts))
        user = json.loads((folder / USER_FILE).read_text(encoding="utf-8"))
        if user["added"] or user["removed"]:
            lexicon._snapshot = lexicon._snapshot.without_words(user["removed"]).with_words(user["added"])
        return lexicon

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write base words and the user's changes into a folder, which appears whole or not at all.

        Vectors that the folder holds for these words stay there; a new folder has none.

        Raises:
            LexiconError: the folder holds something else, or the vectors of other words, or writing failed; what was
                there survives.
        """
        snapshot = self.snapshot()
        base = self._base
        with new_folder(folder, kind=LEXICON) as (aside, facts):
            facts.update(base.save(aside), vectors=keep_vectors(Path(folder), aside, self.fingerprint))
            write_user(aside, added=snapshot.user_words, removed=_words(base, snapshot.hidden))

    @property
    def fingerprint(self) -> str:
        """Sha256 of the base words in order; the user's words have no part in it."""
        return self._base.words.sha256

    @property
    def words(self) -> WordBlob:
        """The base words, a sequence by id."""
        return self._base.words

    @property
    def user_words(self) -> tuple[str, ...]:
        return self._snapshot.user_words

    @property
    def removed_words(self) -> tuple[str, ...]:
        """Base words that the user removed, in order of id."""
        return _words(self._base, self._snapshot.hidden)

    def snapshot(self) -> LexiconSnapshot:
        """What is matched now; it stays so whatever is added or removed later."""
        return self._snapshot

    def match(self, text: str) -> np.ndarray:
        """int32[n, 3] rows (start, end, word_id); see `LexiconSnapshot.match`."""
        return self._snapshot.match(text)

    def add(self, *words: str) -> None:
        """Make `words` the user's own, at once; a word that already is stays where it is.

        Blanks and punctuation inside are fine ("iPhone 15 Pro").

        Raises:
            LexiconError: naming the words that cannot be used (empty, one character, blank at an edge, control
                character, over 64 characters); then none is added.
        """
        self._add(_sound(words))

    def add_file(self, path: str | os.PathLike[str], *, format: str = "auto") -> LoadReport:
        """Add the words of a file; lines that cannot be used are refused in the report and the rest is added.

        Raises:
            LexiconError: the file cannot be read.
        """
        found = read_words(path, format=format, spaces=True)
        self._add(found.words)
        return found.report

    def remove(self, *words: str) -> None:
        """Stop matching `words`, at once: a user's word is dropped, a base word hidden.

        Raises:
            LexiconError: naming the words that are not in the lexicon; then none is removed.
        """
        wanted = [normalize(word) for word in _strings(words)]
        with self._lock:
            unknown = [word for word in wanted if word not in self._snapshot]
            if unknown:
                raise LexiconError(f"cannot remove {_listed(unknown)}: not in the lexicon")
            self._snapshot = self._snapshot.without_words(wanted)

    def word(self, word_id: int) -> str:
        """The word behind an id of the present snapshot."""
        return self._snapshot.word(word_id)

    def id(self, word: str) -> int | None:
        """Id of a base word, hidden or not, or None."""
        return self._base.matcher.number(normalize(word))

    def count(self, word_id: int) -> int | None:
        """Count of a base word as its word list gave it; None for a user's word or a list without counts."""
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
        return f"Lexicon({len(self):,} words, {len(now.user_words):,} user words, {len(now.hidden):,} removed)"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}  # a lock cannot be pickled

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    def _add(self, words: Sequence[str]) -> None:
        with self._lock:
            self._snapshot = self._snapshot.with_words(words)


def _words(base: BaseWords, ids: frozenset[int]) -> tuple[str, ...]:
    return tuple(base.words[word_id] for word_id in sorted(ids))


def check_lexicon(folder: str | os.PathLike[str]) -> None:
    """Read a saved lexicon whole and compare it with its manifest.

    Raises:
        LexiconError: naming the file that is missing, cut short or changed.
    """
    open_folder(folder, kind=LEXICON, check_up_to=sys.maxsize)


def write_user(folder: Path, *, added: Sequence[str] = (), removed: Sequence[str] = ()) -> None:
    """Write the user's part of a lexicon folder."""
    text = to_json({"added": added, "removed": removed})
    (folder / USER_FILE).write_text(text, encoding="utf-8")


def _sound(words: Sequence[str]) -> list[str]:
    wanted = [normalize(word) for word in _strings(words)]
    problems = [f"{word!r} ({reason})" for word in wanted if (reason := reason_to_refuse(word, spaces=True))]
    if problems:
        raise LexiconError(f"cannot add {_listed(problems)}; a word has 2 to 64 characters and no blank at its edges")
    return wanted


def _strings(words: Sequence[str]) -> Sequence[str]:
    for word in words:
        if not isinstance(word, str):
            raise LexiconError(f"expected words, got {type(word).__name__}: put a * before a list of words")
    return words


def _listed(items: Sequence[str], *, n_shown: int = 10) -> str:
    more = f" and {len(items) - n_shown:,} more" if len(items) > n_shown else ""
    return ", ".join(items[:n_shown]) + more
