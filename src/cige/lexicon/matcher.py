"""Matcher: finds every occurrence of a fixed list of words in a text, in C if the package was built with a compiler."""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from cige.errors import LexiconError
from cige.lexicon.hash_trie import CHAR_BITS, FIRST_STATE, FLAG_BITS, HAS_LONGER, IS_WORD, MULTIPLIER, HashTrie
from cige.lexicon.word_blob import WordBlob

_RUN = re.compile("[A-Za-z]{2,}|[0-9]{2,}")  # full-width forms are folded to these before words are matched
_INT32 = np.dtype(np.int32)


def without_cut_runs(rows: np.ndarray, text: str) -> np.ndarray:
    """The rows (start, end, ...) whose edges are not between two Latin letters or two digits.

    Args:
        rows: int[n, 2 or more], half-open spans of `text`.
        text: normalised text.

    Returns:
        `rows` itself if all rows are kept. A word may end between a letter and a digit: iPhone is a word in iPhone15.
    """
    if not len(rows):
        return rows
    cuts = None  # cuts[i]: an edge between characters i - 1 and i splits a run
    for run in _RUN.finditer(text):
        if cuts is None:
            cuts = np.zeros(len(text) + 1, bool)
        cuts[run.start() + 1 : run.end()] = True
    if cuts is None:
        return rows
    is_cut = cuts[rows[:, :2]].any(1)
    return rows[~is_cut] if is_cut.any() else rows


class PythonWalk:
    """Finds every word in a text at 1 MB/s (NumPy reaches 0.2 MB/s on single sentences and 9 MB/s on long texts)."""

    def __init__(self, trie: HashTrie) -> None:
        self._trie = trie
        self._keys = trie.keys.data  # Python's own numbers, which are faster than NumPy's when they are read one by one
        self._numbers = trie.numbers.data

    def __call__(self, text: str) -> np.ndarray:
        """int32[n, 3], sorted rows (start, end, number); raises a LexiconError if the trie is damaged."""
        codes = list(map(ord, text))
        rows = array("i")
        for start, state in enumerate(codes):
            for end in range(start + 1, min(len(codes), start + self._trie.max_chars)):
                entry, slot = self._look_up(state << CHAR_BITS | codes[end])
                if entry & IS_WORD:
                    rows.extend((start, end + 1, self._number(slot)))
                if not entry & HAS_LONGER:
                    break
                state = FIRST_STATE + slot
        return np.array(rows, dtype=np.int32).reshape(-1, 3)

    def whole(self, text: str) -> np.ndarray:
        """The same without the words that begin or end inside a run of Latin letters or of digits."""
        return without_cut_runs(self(text), text)

    def _look_up(self, key: int) -> tuple[int, int]:
        """(entry, slot) of a key; the entry is 0 if the table does not contain the key."""
        keys = self._keys
        slot = ((key * MULTIPLIER & 0xFFFFFFFFFFFFFFFF) >> 32) * len(keys) >> 32
        for _ in range(self._trie.max_probes):
            entry = keys[slot]
            if not entry or entry >> FLAG_BITS == key:
                return entry, slot
            slot = slot + 1 if slot + 1 < len(keys) else 0
        return 0, slot

    def _number(self, slot: int) -> int:
        number = self._numbers[slot]
        if number >= self._trie.n_words:
            raise _damaged()
        return number


class NativeWalk:
    """Finds the same rows as PythonWalk, about 50 times as fast."""

    def __init__(self, trie: HashTrie) -> None:
        self._trie = trie  # keeps the arrays alive, whose addresses are used below
        arrays = (trie.keys.ctypes.data, trie.numbers.ctypes.data, len(trie.keys))
        self._packed = np.array([*arrays, trie.max_probes, trie.n_words, trie.max_chars], dtype=np.uint64).tobytes()

    def __call__(self, text: str) -> np.ndarray:
        return self._rows(_match, text)

    def whole(self, text: str) -> np.ndarray:
        return self._rows(_match_whole, text)

    def _rows(self, match: Callable[[str, bytes], bytearray], text: str) -> np.ndarray:
        try:
            nodes = match(text, self._packed)
        except ValueError as error:
            raise _damaged() from error
        return np.ndarray((len(nodes) // 12, 3), _INT32, nodes)


def _damaged() -> LexiconError:
    return LexiconError(
        "the lexicon refers to a word that it does not have; `cige lexicon check` says which file is damaged"
    )


try:
    from cige.lexicon._walk import match as _match  # type: ignore[import-not-found,unused-ignore]
    from cige.lexicon._walk import match_whole as _match_whole
except ImportError:  # built without a compiler
    Walk: type[PythonWalk | NativeWalk] = PythonWalk
else:
    Walk = NativeWalk if sys.byteorder == "little" else PythonWalk


class Matcher:
    """Finds words of two or more characters with a hash trie.

    Attributes:
        trie: the trie, which is pickled with the matcher; processes share it only if it is mapped.
        find: text -> int32[n, 3], sorted rows (start, end, word number), including overlaps. Raises a LexiconError if
            the trie is damaged.
        find_whole: the same without words that begin or end inside a run of Latin letters or of digits.
    """

    def __init__(self, trie: HashTrie) -> None:
        self.trie = trie
        self.find = walk = Walk(trie)
        self.find_whole = walk.whole

    @classmethod
    def build(cls, words: Sequence[str]) -> Matcher:
        """Build from distinct words of two or more characters; 337,000 words take 0.2 s, and 46,000 take 20 ms."""
        return cls(HashTrie.build(words if isinstance(words, WordBlob) else WordBlob.from_words(words)))

    def number(self, word: str) -> int | None:
        """The number of `word`, or None if it is not in the list."""
        if not 2 <= len(word) <= self.trie.max_chars:
            return None
        rows: np.ndarray = self.find(word)
        # Rows are sorted, so the last of those that begin at 0 is the longest.
        at = int(np.searchsorted(rows[:, 0], 1)) - 1
        return int(rows[at, 2]) if at >= 0 and rows[at, 1] == len(word) else None

    def rows(self, words: Iterable[str]) -> np.ndarray:
        """int64[n]: the number of each word, or -1 if it is not in the list."""
        numbers = map(self.number, words)
        return np.fromiter((-1 if number is None else number for number in numbers), dtype=np.int64)

    def __reduce__(self) -> tuple[Any, ...]:
        return Matcher, (self.trie,)  # `find` holds memory addresses, which are not valid in another process
