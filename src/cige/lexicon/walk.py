"""Find the words of a HashTrie in a text, in C if the package was built with a compiler, else in Python."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable

import numpy as np

from cige.errors import LexiconError
from cige.lexicon.hash_trie import CHAR_BITS, FIRST_STATE, FLAG_BITS, HAS_LONGER, IS_WORD, MULTIPLIER, HashTrie
from cige.lexicon.latin_runs import without_cut_runs

_INT32 = np.dtype(np.int32)


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
