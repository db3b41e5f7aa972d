"""Lattice: a sentence's characters and the words matched over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cige.errors import LexiconError
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.rules import NO_RULES, Rules
from cige.lexicon.snapshot import LexiconSnapshot
from cige.text.given import check_text
from cige.text.normalize import normalize

MAX_WORDS_PER_CHAR = 4.0  # real text has fewer than 1 (mean 0.44, max 0.96 with 337k words)


@dataclass(frozen=True)
class Lattice:
    """A character sequence and the words over it.

    Attributes:
        text: the normalised sentence of T code points; character i is the node over [i, i+1).
        words: int32[W, 3], rows (start, end, word_id) with half-open [start, end) in code points, sorted by
            start, end, id. Ids >= `n_base` are those of user words.
        n_base: number of words of the base lexicon.
        n_dropped: number of matched words that exceed the maximum number of nodes (0 for real text). Base words of
            punctuation and signs alone do not count, for no name is made of them.
        closed: the stretches [start, end) of `text` in which there are no entities; sorted, disjoint.
        user_labels: the label of the user word n_base + k, or None; empty if no word has a label.
        rules: the stretches of `text` that the user's forced and blocked words cover.
    """

    text: str
    words: np.ndarray
    n_base: int
    n_dropped: int = 0
    closed: tuple[tuple[int, int], ...] = ()
    user_labels: Sequence[str | None] = ()
    rules: Rules = NO_RULES

    @property
    def n_chars(self) -> int:
        """T, the number of characters."""
        return len(self.text)

    @property
    def n_words(self) -> int:
        """W, the number of words."""
        return len(self.words)

    @property
    def n_nodes(self) -> int:
        """T + W: each character and each word is a node."""
        return len(self.text) + len(self.words)

    @property
    def is_user(self) -> np.ndarray:
        """bool[W]: which words are user words."""
        return self.words[:, 2] >= self.n_base

    @cached_property
    def labelled_words(self) -> list[tuple[int, str]]:
        """(row of `words`, label) of each user word that has a label."""
        labels, n_base = self.user_labels, self.n_base
        if not labels:
            return []
        numbers = enumerate((self.words[:, 2]).tolist())
        labelled = [(row, labels[number - n_base]) for row, number in numbers if number >= n_base]
        return [(row, label) for row, label in labelled if label is not None]

    @property
    def forced_words(self) -> set[int]:
        """The rows of `words` that are user words over forced stretches."""
        places = {(span.start, span.end) for span in self.rules.forced}
        if not places:
            return set()
        return {k for k in np.flatnonzero(self.is_user).tolist() if tuple(self.words[k, :2].tolist()) in places}


def build_lattice(
    text: str,
    lexicon: LexiconSnapshot | Lexicon,
    *,
    closed: tuple[tuple[int, int], ...] = (),
    rules: Rules = NO_RULES,
    max_words_per_char: float = MAX_WORDS_PER_CHAR,
) -> Lattice:
    """Match `text` with `lexicon` and keep at most `max_words_per_char` words per character.

    If there are more words, user words are kept first, then longer words, then earlier ones; `n_dropped` is the number
    of the others. Characters are never dropped.

    Args:
        lexicon: an immutable set of words, such as `lexicon.snapshot()` of a Lexicon, or a Lexicon, whose
            current words are used. Texts that belong together should share one snapshot, so that no word changes
            between them.
        closed, rules: as in Lattice.

    Raises:
        TypeError: `text` is not a str.
        LexiconError: `lexicon` is neither a Lexicon nor a snapshot of one.
    """
    check_text(text)
    if isinstance(lexicon, Lexicon):
        lexicon = lexicon.snapshot()
    if not isinstance(lexicon, LexiconSnapshot):
        raise LexiconError(
            "lexicon: expected a Lexicon, such as ner.lexicon or cige.Lexicon.from_words(words), got "
            f"{type(lexicon).__name__}"
        )
    text = normalize(text)
    words = lexicon.match(text)
    budget = int(max_words_per_char * len(text)) + 8
    n_dropped = max(0, len(words) - budget)
    if n_dropped:
        is_base = words[:, 2] < lexicon.n_base
        length = words[:, 1] - words[:, 0]
        keep = np.lexsort((words[:, 0], -length, is_base))[:budget]
        is_kept = np.zeros(len(words), bool)
        is_kept[keep] = True
        n_dropped = _n_that_count(text, words[~is_kept], n_base=lexicon.n_base)
        words = words[is_kept]
    return Lattice(text, words, lexicon.n_base, n_dropped, closed, lexicon.user_labels, rules)


def _n_that_count(text: str, words: np.ndarray, *, n_base: int) -> int:
    """How many of the words int32[n, 3] are a user's, or have a letter, a digit or a Chinese character."""
    n_before = np.concatenate([[0], np.cumsum([character.isalnum() for character in text])])  # [T + 1]
    has_letters = n_before[words[:, 1]] > n_before[words[:, 0]]
    return int((has_letters | (words[:, 2] >= n_base)).sum())
