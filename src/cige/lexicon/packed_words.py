"""PackedWords: many words in little memory, found in texts in C if the package was built with a compiler.

A hash trie has a slot for every beginning of a word, which is too much for millions of words in memory. Here a table
has 5 bytes for every word (its number, and 8 bits of its hash) and a filter 6 bits for every character. To find the
words that begin at a place of a text, their hash grows by one character after another as long as the filter may contain
it, and the table says which beginnings are words. The text of a word is compared, so the filter and the hash only save
time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from cige.errors import LexiconError
from cige.lexicon.word_blob import WordBlob
from cige.text.normalize import normalize_word

FIRST_HASH, MULTIPLIER = 0x243F6A8885A308D3, 0x9E3779B97F4A7C15
FULL = 0.6  # share of the table's slots that are used
FILTER_BITS = 6  # for each character
_INT32 = np.dtype(np.int32)
_64_BITS = (1 << 64) - 1


class PackedWords(Sequence[str]):
    """Distinct words, numbered 0 .. V-1, which do not change.

    Attributes:
        words: the V words; offsets are uint32.
        slots: uint32[S], 1 + the number of a word, or 0 if the slot is empty.
        tags: uint8[S], the lowest bits of its hash.
        filter: uint64[F], in which each beginning of two or more characters sets two bits, and a word of one character.
        max_chars: length of the longest word.
        has_single: whether a word has one character.
        find: text -> int32[n, 3], sorted rows (start, end, number), including overlaps and words of one character.
    """

    def __init__(self, words: WordBlob, way: type[PythonPacked | NativePacked]):
        """The tables are empty; `build` fills them."""
        if words.offsets[-1] >= 1 << 32:
            raise LexiconError(f"{len(words):,} words have 4 GB; expected less; add fewer words at a time")
        self.words = WordBlob(blob=words.blob, offsets=np.ascontiguousarray(words.offsets, np.uint32))
        n_chars, self.max_chars, n_single = way.measure(self.words)
        self.has_single = n_single > 0
        self.slots = np.zeros(int(len(words) / FULL) + 1, np.uint32)
        self.tags = np.zeros(len(self.slots), np.uint8)
        self.filter = np.zeros(n_chars * FILTER_BITS // 64 + 1, np.uint64)
        self._way = way(self)
        self.find: Callable[[str], np.ndarray] = self._way.find

    @classmethod
    def build(
        cls, words: WordBlob, way: type[PythonPacked | NativePacked] | None = None
    ) -> tuple[PackedWords, np.ndarray | None]:
        """Build from words. Of equal ones, all but the first are left out; in this case, the second value is uint32,
        for each given word the index of the first that is equal, and otherwise None."""
        built = cls(words, way or Packed)
        first = built._way.fill()
        if first is not None:
            built = cls(words.only(first == np.arange(len(first))), way or Packed)
            built._way.fill()
        return built, first

    def numbers(self, words: WordBlob) -> np.ndarray:
        """int64[n]: the number of each word, or -1 if it is not one of these."""
        return self._way.numbers(words)

    def number(self, word: str) -> int | None:
        """The number of `word`, or None if it is not one of these; any str is accepted."""
        if not 0 < len(word) <= self.max_chars or "\n" in word:
            return None
        rows = self.find(word).tolist()
        return next((number for start, end, number in rows if start == 0 and end == len(word)), None)

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]  # as WordBlob
        return self.words[index]

    def __reduce__(self) -> tuple[Any, ...]:  # the table is made again sooner than it is sent
        return _built, (self.words.blob.tobytes(),)


def _built(lines: bytes) -> PackedWords:
    return PackedWords.build(WordBlob.of_lines(lines))[0]


def _unpickled(lines: bytes) -> PackedWords:
    """Of pickles of versions up to 0.2, whose words may have marks that are folded since. Words that became equal stay
    as they were, and are not found, so that the numbers of the others hold."""
    words = WordBlob.of_lines(lines)
    folded, seen = [], set(words)
    for word in words:
        form = normalize_word(word)
        folded.append(word if form in seen or not form else form)
        seen.add(form)
    return PackedWords.build(WordBlob.from_words(folded))[0]


class PythonPacked:
    """The look-ups of PackedWords in Python."""

    def __init__(self, packed: PackedWords) -> None:
        self._packed = packed

    @staticmethod
    def measure(words: WordBlob) -> tuple[int, int, int]:
        """Characters of all words, characters of the longest, and words of one character."""
        lengths = list(map(len, words))
        return sum(lengths), max(lengths, default=0), lengths.count(1)

    def fill(self) -> np.ndarray | None:
        """Fill the empty table and filter; returns `first` as `PackedWords.build`."""
        packed, n_equal = self._packed, 0
        first = np.arange(len(packed.words), dtype=np.uint32)
        for number, word in enumerate(packed.words):
            hashes = _hashes(word)
            for hash in hashes[2:] or hashes[1:]:
                packed.filter[self._block(hash)] |= np.uint64(_bits(hash))
            equal, slot = self._look_up(hashes[-1], word)
            if equal >= 0:
                first[number] = equal
                n_equal += 1
            else:
                packed.slots[slot], packed.tags[slot] = number + 1, hashes[-1] & 0xFF
        return first if n_equal else None

    def numbers(self, words: WordBlob) -> np.ndarray:
        return np.array([self._look_up(_hashes(word)[-1], word)[0] for word in words], np.int64)

    def find(self, text: str) -> np.ndarray:
        rows: list[tuple[int, int, int]] = []
        for start in range(len(text)):
            hash = FIRST_HASH
            for end in range(start + 1, min(len(text), start + self._packed.max_chars) + 1):
                hash, n = _next(hash, ord(text[end - 1])), end - start
                if n == 1 and not self._packed.has_single:
                    continue
                bits = _bits(hash)
                if int(self._packed.filter[self._block(hash)]) & bits != bits:
                    if n == 1:
                        continue
                    break
                number, _ = self._look_up(hash, text[start:end])
                if number >= 0:
                    rows.append((start, end, number))
        return np.array(rows, np.int32).reshape(-1, 3)

    def _block(self, hash: int) -> int:
        return (hash & 0xFFFFFFFF) * len(self._packed.filter) >> 32

    def _look_up(self, hash: int, word: str) -> tuple[int, int]:
        """(number or -1, slot where it is or would be)."""
        packed = self._packed
        slot = (hash >> 32) * len(packed.slots) >> 32
        while number := int(packed.slots[slot]):
            if packed.tags[slot] == hash & 0xFF and packed.words[number - 1] == word:
                return number - 1, slot
            slot = slot + 1 if slot + 1 < len(packed.slots) else 0
        return -1, slot


class NativePacked:
    """The same as PythonPacked in C."""

    def __init__(self, packed: PackedWords) -> None:
        words = packed.words
        self._kept = (words.blob, words.offsets, packed.slots, packed.tags, packed.filter)
        numbers = (len(words), len(packed.slots), len(packed.filter), packed.max_chars, packed.has_single)
        self._n_words = len(words)
        self._packed = np.array([*map(_address, self._kept), *numbers], np.uint64).tobytes()

    @staticmethod
    def measure(words: WordBlob) -> tuple[int, int, int]:
        sizes: tuple[int, int, int] = _packed.measure(_address(words.blob), _address(words.offsets), len(words))
        return sizes

    def fill(self) -> np.ndarray | None:
        first = np.empty(self._n_words, np.uint32)
        return first if _packed.fill(self._packed, _address(first)) else None

    def numbers(self, words: WordBlob) -> np.ndarray:
        offsets, out = np.ascontiguousarray(words.offsets, np.uint32), np.empty(len(words), np.int64)
        _packed.numbers(self._packed, _address(words.blob), _address(offsets), len(words), _address(out))
        return out

    def find(self, text: str) -> np.ndarray:
        rows = _packed.find(text, self._packed)
        return np.ndarray((len(rows) // 12, 3), _INT32, rows)


def give_memory_back() -> None:
    """Give memory that was freed back to the system, where it is known how."""
    if Packed is NativePacked:
        _packed.trim()


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]  # type: ignore[no-any-return]


def _next(hash: int, char: int) -> int:
    hash = (hash ^ char) * MULTIPLIER & _64_BITS
    return hash ^ hash >> 32


def _hashes(word: str) -> list[int]:
    """The hash of each beginning of a word, from the empty one on."""
    return list(accumulate(map(ord, word), _next, initial=FIRST_HASH))


def _bits(hash: int) -> int:
    return 1 << (hash >> 32 & 63) | 1 << (hash >> 38 & 63)


try:
    from cige.lexicon import _packed  # type: ignore[attr-defined,unused-ignore]
except ImportError:  # built without a compiler
    Packed: type[PythonPacked | NativePacked] = PythonPacked
else:
    Packed = NativePacked if sys.byteorder == "little" else PythonPacked
