"""HashIndex: word -> row through sorted hashes on disk, so that a million words need no memory and no loading time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cige.lexicon.word_blob import WordBlob, load_array

HASHES_FILE = "hashes.npy"
ROWS_FILE = "rows.npy"


def word_hash(word: str) -> int:
    """A 64-bit hash that is the same on every machine and in every run."""
    return int.from_bytes(hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


@dataclass(frozen=True)
class HashIndex:
    """Finds the rows of words by hash; if two words have the same hash, the words themselves are compared.

    Attributes:
        hashes: uint64[V], ascending.
        rows: uint32[V], the row of each.
        words: the V words by row.
    """

    hashes: np.ndarray
    rows: np.ndarray
    words: WordBlob

    @classmethod
    def build(cls, words: WordBlob) -> HashIndex:
        hashes = np.fromiter(map(word_hash, words), dtype=np.uint64, count=len(words))
        order = np.argsort(hashes, kind="stable")
        return cls(hashes=hashes[order], rows=order.astype(np.uint32), words=words)

    @classmethod
    def load(cls, folder: Path, words: WordBlob) -> HashIndex:
        return cls(hashes=load_array(folder / HASHES_FILE), rows=load_array(folder / ROWS_FILE), words=words)

    def save(self, folder: Path) -> None:
        np.save(folder / HASHES_FILE, self.hashes)
        np.save(folder / ROWS_FILE, self.rows)

    def find(self, words: Iterable[str]) -> np.ndarray:
        """int64[n]: the row of each word, or -1 if it has none."""
        words = list(words)
        wanted = np.fromiter(map(word_hash, words), dtype=np.uint64, count=len(words))
        places = np.searchsorted(self.hashes, wanted)
        numbers = np.full(len(words), -1, dtype=np.int64)
        for i, (word, place) in enumerate(zip(words, places.tolist(), strict=True)):
            while place < len(self.hashes) and self.hashes[place] == wanted[i]:
                row = int(self.rows[place])
                if self.words[row] == word:
                    numbers[i] = row
                    break
                place += 1
        return numbers
