"""BaseWords: the words from which a lexicon was built, in memory or mapped from a folder that processes share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cige.errors import LexiconError
from cige.folders.kinds import LEXICON
from cige.json_text import JsonObject
from cige.lexicon.hash_trie import KEYS_FILE, HashTrie
from cige.lexicon.matcher import Matcher
from cige.lexicon.storage import open_folder
from cige.lexicon.word_blob import WordBlob, load_array
from cige.lexicon.word_rules import MAX_WORD_CHARS

COUNTS_FILE = "counts.npy"
STORED_FROM = 50_000  # words; with fewer, the trie is built in 0.05 s, and the folder without it is a third of the size
_FACTS = {"n_words": int, "has_counts": bool, "fingerprint": str}  # of the manifest
_FACTS_OF_TRIE = {"max_chars": int, "max_probes": int}  # additional facts of folders with a stored trie


@dataclass(frozen=True)
class BaseWords:
    """The words of a lexicon, numbered 0 .. V-1.

    Attributes:
        words: the V words.
        counts: uint32 or int64[V] from the word list, or None if it has none.
        matcher: finds the words in a text.
        folder: the folder from which they are mapped; None for words in memory.
    """

    words: WordBlob
    counts: np.ndarray | None
    matcher: Matcher
    folder: Path | None = None

    @classmethod
    def build(cls, words: WordBlob, counts: Sequence[int] | None) -> BaseWords:
        counts_of_words = None if counts is None else np.asarray(counts, dtype=np.int64)
        if counts_of_words is not None and np.array_equal(counts_of_words, counts_of_words.astype(np.uint32)):
            counts_of_words = counts_of_words.astype(np.uint32)  # half the file size
        return cls(words=words, counts=counts_of_words, matcher=Matcher.build(words))

    @classmethod
    def load(cls, folder: Path, facts: JsonObject) -> BaseWords:
        """Map the files that `save` wrote; `facts` is the manifest of the folder, which the caller has checked. Raises
        a LexiconError if the files do not belong together."""
        needed = _FACTS | (_FACTS_OF_TRIE if KEYS_FILE in facts["files"] else {})
        wrong = [name for name, kind in needed.items() if type(facts.get(name)) is not kind]
        if wrong:
            raise LexiconError(f"{folder}: its manifest does not tell {', '.join(wrong)}; build the folder again")
        words = WordBlob.load(folder, sha256=facts["fingerprint"])
        if KEYS_FILE in facts["files"]:
            numbers = {name: facts[name] for name in ("max_probes", "max_chars", "n_words")}
            matcher = Matcher(HashTrie.load(folder, **numbers))
        else:
            try:
                words.check()
                if len(words) and int(np.diff(words.offsets).max()) > 4 * MAX_WORD_CHARS + 1:
                    raise ValueError(f"a word is longer than {MAX_WORD_CHARS} characters")
                matcher = Matcher.build(words)
            except ValueError as reason:
                raise LexiconError(f"{folder}: its words cannot be read ({reason}); build the folder again") from reason
        counts = load_array(folder / COUNTS_FILE) if facts["has_counts"] else None
        if matcher.trie.max_chars > MAX_WORD_CHARS:
            raise LexiconError(
                f"{folder}: a word of {matcher.trie.max_chars} characters; expected {MAX_WORD_CHARS} or fewer; "
                "build the folder again"
            )
        is_whole = counts is None or (counts.shape == (len(words),) and counts.dtype.kind in "iu")
        if facts["n_words"] != len(words) or not is_whole:
            raise LexiconError(f"{folder}: its manifest or counts belong to other words; build the folder again")
        return cls(words=words, counts=counts, matcher=matcher, folder=folder.resolve())

    def save(self, folder: Path, *, has_words: bool = False) -> JsonObject:
        """Write into a new folder, which may contain the words already; returns the facts for its manifest."""
        if not has_words:
            self.words.save(folder)
        trie = self.matcher.trie
        if len(self.words) >= STORED_FROM:
            trie.save(folder)
        if self.counts is not None:
            np.save(folder / COUNTS_FILE, self.counts)
        return {
            "n_words": len(self.words),
            "max_chars": trie.max_chars,
            "max_probes": trie.max_probes,
            "has_counts": self.counts is not None,
            "fingerprint": self.words.sha256,
        }

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle mapped words as the path of their folder, which the other process maps, and other words by value."""
        if self.folder is not None and _is_unchanged(self.folder, self.words.sha256):
            return _reopen, (self.folder, self.words.sha256)
        return BaseWords, (self.words, self.counts, self.matcher)


def _is_unchanged(folder: Path, fingerprint: str) -> bool:
    try:
        return bool(open_folder(folder, kind=LEXICON)["fingerprint"] == fingerprint)
    except LexiconError:  # gone, or replaced by something else; the mapped files can still be read
        return False


def _reopen(folder: Path, fingerprint: str) -> BaseWords:
    facts = open_folder(folder, kind=LEXICON)
    if facts["fingerprint"] != fingerprint:
        raise LexiconError(f"{folder}: replaced by another lexicon since it was opened; load it again")
    return BaseWords.load(folder, facts)
