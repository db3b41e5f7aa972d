"""What texts have in common: keys that are equal for equal texts, and the character bigrams of a text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from cige.text.normalize import normalize

_DIGIT = re.compile(r"\d")
_SPACE = re.compile(r"\s+")
EDGE = "\n"  # stands before and after a text; no line has it


def folded(text: str) -> str:
    """A text as it is compared: width and traditional characters folded, digits as 0, one for one."""
    return _DIGIT.sub("0", normalize(text))


def text_key(text: str) -> int:
    """64 bits that two texts share if they differ in nothing but width, traditional characters and whitespace."""
    return _hashed(_SPACE.sub("", normalize(text)))


def shuffled(key: int, seed: int) -> int:
    """64 bits that order keys at random, in another order for each seed, whatever else is in the file."""
    return _hashed(f"{seed} {key}")


def bigrams(text: str, start: int = 0, end: int | None = None) -> list[str]:
    """The bigrams of a folded text that have a character of [start, end), with the edges of the text; repeats stay."""
    end = len(text) if end is None else end
    framed = f"{EDGE}{text}{EDGE}"
    return [framed[k : k + 2] for k in range(start, end + 1)]


def _hashed(text: str) -> int:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


class NearDuplicates:
    """Texts that were chosen, and whether another one is nearly the same as one of them.

    Two texts are near-duplicates if of the different bigrams that either has, they share `threshold` or more (Jaccard
    index); digits count as equal.
    """

    def __init__(self, threshold: float = 0.7):
        self._threshold = threshold
        self._sizes: list[int] = []
        self._with: dict[str, list[int]] = {}  # bigram -> the numbers of texts that have it

    def add(self, grams: Sequence[str]) -> None:
        """Take in a text by its bigrams."""
        distinct = set(grams)
        for gram in distinct:
            self._with.setdefault(gram, []).append(len(self._sizes))
        self._sizes.append(len(distinct))

    def has(self, grams: Sequence[str]) -> bool:
        """Whether one of the texts is nearly the same."""
        distinct = set(grams)
        shared: dict[int, int] = {}
        for gram in distinct:
            for number in self._with.get(gram, ()):
                shared[number] = shared.get(number, 0) + 1
        return any(n >= self._threshold * (len(distinct) + self._sizes[number] - n) for number, n in shared.items())
