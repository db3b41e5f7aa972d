"""WordStore: the words that users of a server add and remove, in one file that all its workers read and write."""

from __future__ import annotations

import fcntl
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cige.errors import CigeError, LexiconError
from cige.folders.atomic import write_atomically
from cige.json_text import to_json
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.user_word import UserChanges, UserWord, reason_to_refuse_user_word
from cige.lexicon.word_rules import CONTRADICTION
from cige.serving.refusals import refused_word, shown
from cige.text.normalize import fold_marks, normalize, normalize_word, without_invisible

MOST_LISTED = 10  # words in a message


class StoreError(CigeError):
    """The file cannot be read or written, which no request caused."""

    code = "lexicon_file"  # of `refusals.CODES`


class _Unchanged(CigeError):
    """A change that was not made, with the figures and names in the message."""

    def __init__(self, message: str, **params: str | int):
        super().__init__(message)
        self.params = params


class VersionConflict(_Unchanged):
    """A change was meant for another version than the current one."""

    code = "version_conflict"


class LexiconFull(_Unchanged):
    """A change would exceed the maximum number of words."""

    code = "lexicon_full"


class UnknownWords(_Unchanged, LexiconError):
    """Words to remove that are in no lexicon."""

    code = "unknown_word"


@dataclass(frozen=True)
class StoredWords:
    """The words at one moment.

    Attributes:
        version: 0 before the first change, and increased by one with every change.
        changes: the changes of users.
        lexicons: the initial lexicons of the server, in order, with these changes; they are immutable.
    """

    version: int
    changes: UserChanges
    lexicons: tuple[Lexicon, ...]

    @property
    def entries(self) -> list[UserWord]:
        """The user words of all lexicons, without duplicates."""
        return list(
            {entry.text: entry for lexicon in reversed(self.lexicons) for entry in lexicon.user_entries}.values()
        )

    @property
    def removed(self) -> list[str]:
        """The words that users removed and have not added since."""
        added = {fold_marks(word.text) for word in self.changes.added}
        return [word for word in self.changes.removed if fold_marks(word) not in added]


class WordStore:
    """Persistent changes of lexicons, which other processes see immediately.

    A change applies to the lexicons of all served models, since names do not depend on the model.

    A change is written to a new file that replaces the old one, under a lock of the operating system, so the file is
    always complete and no change is lost. Readers compare the identity of the file with that of the version they read
    last. All methods may be called from any thread.

    Args:
        starts: the lexicons before any change, one per model. They must be the same in all processes.
        path: the file; None keeps changes in memory.
        max_words: how many words may be added.

    Raises:
        StoreError: the file exists and cannot be read.
    """

    def __init__(self, starts: Sequence[Lexicon], path: Path | None = None, *, max_words: int = 200_000):
        # A link stays a link: the file to which it points is replaced, and locked for all who use it.
        path = None if path is None else path.resolve()
        self._starts, self._path, self._max_words = tuple(starts), path, max_words
        self._lock = threading.Lock()  # of what was read last
        self._changing = threading.Lock()  # of changes, which take a second if there are many words; readers go on
        self._seen: tuple[int, ...] | None = None
        self._now = self._stored(0, UserChanges())
        if path is not None:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as reason:
                raise StoreError(
                    f"{path.parent}: cannot be made ({reason.strerror}); give a folder to write to"
                ) from reason
            with self._lock:
                self._read_if_changed()

    def _stored(self, version: int, changes: UserChanges) -> StoredWords:
        return StoredWords(version, changes, tuple(start.changed(changes) for start in self._starts))

    def _after(self, now: StoredWords, version: int, changes: UserChanges) -> StoredWords:
        """Like `_stored`. If words were only added since `now`, or got another label or mode, those alone are packed,
        so that requests of other workers, which wait for it, do not wait longer the more words there are."""
        before = now.changes.added
        first, further = changes.added[: len(before)], changes.added[len(before) :]
        if [word.text for word in first] != [word.text for word in before] or changes.removed != now.changes.removed:
            return self._stored(version, changes)
        changed = [word for word, old in zip(first, before, strict=True) if word != old]
        packed = UserChanges((*changed, *further))
        return StoredWords(version, changes, tuple(lexicon.changed(packed) for lexicon in now.lexicons))

    def current(self) -> StoredWords:
        """The current words, including changes of other processes.

        If the file was removed or damaged, the words that were read last are returned; `check` reports the problem.
        """
        with self._lock:
            with suppress(StoreError):
                self._read_if_changed()
            return self._now

    def check(self) -> None:
        """Raise a StoreError if the file is missing or damaged."""
        with self._lock:
            self._read_if_changed()
            if self._path is not None and self._now.version and not self._path.exists():
                raise StoreError(f"{self._path}: gone; the next change writes it again")

    def add(self, words: Sequence[UserWord], *, version: int | None = None) -> StoredWords:
        """Add words, or change the label and mode of existing ones; either all words or none are added.

        A call without words leaves the version as it is.

        Args:
            version: the version for which the change is meant; None means any version.

        Raises:
            Refused: a word cannot be used; it is named.
            VersionConflict: the current version is another one.
            LexiconFull: there would be too many words.
            StoreError: the file cannot be read or written; nothing has changed then.
        """
        wanted = usable(words)

        def change(now: StoredWords) -> UserChanges:
            added = {fold_marks(word.text): word for word in now.changes.added} | {word.text: word for word in wanted}
            if len(added) > self._max_words:
                message = f"{len(added):,} words would be there; at most {self._max_words:,} may; remove some first"
                raise LexiconFull(message, given=len(added), most=self._max_words)
            return UserChanges(tuple(added.values()), now.changes.removed)

        return self._changed(wanted, change, version)

    def remove(self, words: Sequence[str], *, version: int | None = None) -> StoredWords:
        """Undo `add` for words that were added here, and stop matching other words of any origin; all or none.

        A word that was added here reverts to what it was before, such as a word of the model's lexicon. A further call
        removes that word.

        Raises:
            UnknownWords: naming the words that are in no lexicon.
            VersionConflict, StoreError: see `add`.
        """
        wanted = list(dict.fromkeys(without_invisible(normalize(word)) for word in words))

        def change(now: StoredWords) -> UserChanges:
            if unknown := [word for word in wanted if not any(word in lexicon for lexicon in now.lexicons)]:
                listed = ", ".join(map(shown, unknown[:MOST_LISTED]))
                raise UnknownWords(f"cannot remove {listed}: not in the lexicon", words=listed, n_words=len(unknown))
            added = {fold_marks(word.text): word for word in now.changes.added}
            own = set(map(fold_marks, wanted))
            removed = [word for word in wanted if fold_marks(word) not in added]  # and thus in a lexicon of the start
            remaining = tuple(word for text, word in added.items() if text not in own)
            return UserChanges(remaining, (*now.changes.removed, *removed))

        return self._changed(wanted, change, version)

    def _changed(
        self, wanted: Sequence[object], change: Callable[[StoredWords], UserChanges], version: int | None
    ) -> StoredWords:
        """The words after a change, which is none if no words are `wanted`."""
        with self._changing, self._alone():
            with self._lock:
                self._read_if_changed()
                now = self._now
            if version is not None and version != now.version:
                message = f"the change was made for version {version}; the lexicon has version {now.version}"
                raise VersionConflict(message, given=version, version=now.version)
            if not wanted:
                return now
            after = self._after(now, now.version + 1, change(now))
            seen = None if self._path is None else self._write(after, self._path)
            with self._lock:
                self._now, self._seen = after, seen
            return after

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Lock the file against changes by other processes; the lock ends with the process that has it."""
        if self._path is None:
            yield
            return
        try:
            file = self._path.with_name(f"{self._path.name}.lock").open("a")
        except OSError as reason:
            raise StoreError(f"{self._path}: cannot be changed ({reason.strerror})") from reason
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _write(self, words: StoredWords, path: Path) -> tuple[int, ...]:
        """Write the file; returns its identity."""
        content = to_json({"version": words.version} | words.changes.to_dict())
        try:
            write_atomically(path, content)
            return _identity(path)
        except OSError as reason:
            raise StoreError(f"{path}: not written ({reason.strerror}); the words are as before") from reason

    def _read_if_changed(self) -> None:
        if self._path is None:
            return
        try:
            identity = _identity(self._path)
            if identity == self._seen:
                return
            stored: Any = json.loads(self._path.read_text(encoding="utf-8"))
            version, changes = stored["version"], UserChanges.from_dict(stored, source=self._path)
            if type(version) is not int or version < 0:
                raise ValueError(f"version {version!r}")
            if version < self._now.version:
                raise StoreError(
                    f"{self._path}: version {version}, older than version {self._now.version}, which was read before; "
                    "put the newer file back, or start the server again to go back to this one"
                )
            self._now = self._after(self._now, version, changes)
            self._seen = identity
        except FileNotFoundError:
            self._seen = None
        except StoreError:
            raise
        except OSError as reason:
            raise StoreError(f"{self._path}: cannot be read ({reason.strerror})") from reason
        except (ValueError, KeyError, TypeError, RecursionError) as reason:
            raise StoreError(
                f"{self._path}: damaged ({reason or type(reason).__name__}); expected the words that a server wrote; "
                "put a copy in its place, or remove it to start without words"
            ) from reason


def usable(words: Sequence[UserWord]) -> list[UserWord]:
    """The words in their normalised spelling; raises Refused, which names the first word that cannot be used or that is
    given again with another label or mode.
    """
    wanted = [replace(word, text=normalize_word(word.text)) for word in words]
    for word in wanted:
        if reason := reason_to_refuse_user_word(word):
            raise refused_word(word, reason)
    first: dict[str, UserWord] = {}
    for word in wanted:
        if first.setdefault(word.text, word) != word:
            raise refused_word(word, CONTRADICTION)
    return wanted


def _identity(path: Path) -> tuple[int, ...]:
    """The identity of the file, which differs from all previous files, since every change creates a new file."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size
