"""Compare texts: keys that are equal for equal texts, character bigrams, and near-duplicates."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence

from cige.text.normalize import normalize

_DIGIT = re.compile(r"\d")
_SPACE = re.compile(r"\s+")
EDGE = "\n"  # marks the beginning and the end of a text; does not occur in lines
NEAR = 0.7  # the least Jaccard index of the sets of bigrams of two near-duplicates


def folded(text: str) -> str:
    """The text for comparisons, of the same length: width and traditional characters folded, all digits 0."""
    return _DIGIT.sub("0", normalize(text))


def text_key(text: str) -> int:
    """A 64-bit hash, equal for texts that differ only in width, traditional characters and whitespace."""
    return _hashed(_SPACE.sub("", normalize(text)))


def shuffled(key: int, seed: int) -> int:
    """A 64-bit hash of a key and a seed, for a random order that does not depend on the rest of the file."""
    return _hashed(f"{seed} {key}")


def bigrams(text: str, start: int = 0, end: int | None = None) -> list[str]:
    """The bigrams of a folded text with a character in [start, end), including its edges, with repetitions."""
    end = len(text) if end is None else end
    framed = f"{EDGE}{text}{EDGE}"
    return [framed[k : k + 2] for k in range(start, end + 1)]


def _hashed(text: str) -> int:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


class NearDuplicates:
    """A set of chosen texts that detects near-duplicates of them, by their bigrams (see NEAR)."""

    def __init__(self) -> None:
        self._sizes: list[int] = []
        self._with: dict[str, list[int]] = {}  # bigram -> the numbers of the texts that contain it

    def add(self, grams: Sequence[str]) -> None:
        """Add a text, given its bigrams."""
        distinct = set(grams)
        for gram in distinct:
            self._with.setdefault(gram, []).append(len(self._sizes))
        self._sizes.append(len(distinct))

    def has(self, grams: Sequence[str]) -> bool:
        """Whether the text with these bigrams is a near-duplicate of one of the texts."""
        distinct = set(grams)
        shared = Counter(number for gram in distinct for number in self._with.get(gram, ()))
        return any(n >= NEAR * (len(distinct) + self._sizes[number] - n) for number, n in shared.items())
