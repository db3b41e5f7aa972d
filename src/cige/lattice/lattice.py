"""Lattice: a sentence's characters and the words matched over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cige.text.normalize import normalize

MAX_WORDS_PER_CHAR = 4.0  # real text stays below 1 (mean 0.44, max 0.96 with 337k words); 4 only cuts pathological text


class WordMatcher(Protocol):
    """What a lattice needs of a lexicon snapshot."""

    n_base: int

    def match(self, text: str) -> np.ndarray: ...


@dataclass(frozen=True)
class Lattice:
    """A character sequence and the words over it.

    Attributes:
        text: the normalised sentence, T code points; character i is the node over [i, i+1).
        words: int32[W, 3], rows (start, end, word_id) with half-open [start, end) in code points, sorted by
            start, end, id. Ids >= `n_base` are a user's own words.
        n_base: number of words of the base lexicon.
        n_dropped: how many matched words the node budget left out (0 on real text).
    """

    text: str
    words: np.ndarray
    n_base: int
    n_dropped: int = 0

    @property
    def n_chars(self) -> int:
        return len(self.text)

    @property
    def n_words(self) -> int:
        return len(self.words)

    @property
    def n_nodes(self) -> int:
        return len(self.text) + len(self.words)

    @property
    def is_user(self) -> np.ndarray:
        """bool[W]: which words are a user's own."""
        return self.words[:, 2] >= self.n_base


def build_lattice(text: str, lexicon: WordMatcher, *, max_words_per_char: float = MAX_WORDS_PER_CHAR) -> Lattice:
    """Match `text` against `lexicon` and keep at most `max_words_per_char` words a character.

    Over budget, a user's own words are kept first, then longer words, then earlier ones; `n_dropped` says how
    many went. Characters are never dropped.
    """
    text = normalize(text)
    words = lexicon.match(text)
    budget = int(max_words_per_char * len(text)) + 8
    n_dropped = max(0, len(words) - budget)
    if n_dropped:
        is_base = words[:, 2] < lexicon.n_base
        length = words[:, 1] - words[:, 0]
        keep = np.lexsort((words[:, 0], -length, is_base))[:budget]
        words = words[np.sort(keep)]
    return Lattice(text=text, words=words, n_base=lexicon.n_base, n_dropped=n_dropped)
