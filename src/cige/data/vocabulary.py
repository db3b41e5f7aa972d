"""Vocabulary: the rows of characters, character bigrams and lexicon words in the embedding tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from cige.data.components import ComponentTable, looked_up
from cige.lattice.lattice import Lattice

PAD, UNK, USER = 0, 1, 2  # rows of every table; all user words share the row USER
N_SPECIAL = 3
END = 0x1FFFFF  # the second half of the last bigram of a sentence; larger than any code point
BIGRAM_SHIFT = 21  # bits of a code point; the bits above them are the first character of a bigram


@dataclass(frozen=True)
class CodeTable:
    """An immutable map from integer codes to rows, as two sorted arrays (small on disk, one look-up per sentence).

    Attributes:
        codes: int64[K], ascending.
        rows: int32[K], the row of each code; other codes have row UNK.
    """

    codes: np.ndarray
    rows: np.ndarray

    @classmethod
    def from_ordered(cls, codes: np.ndarray) -> CodeTable:
        """Assign row N_SPECIAL + k to the k-th of the distinct `codes`."""
        order = np.argsort(codes)
        return cls(codes=codes[order], rows=(order + N_SPECIAL).astype(np.int32))

    def __len__(self) -> int:
        return len(self.codes)

    def look_up(self, codes: np.ndarray) -> np.ndarray:
        """int64[n] rows of int64[n] codes."""
        return looked_up(codes, self.codes, self.rows, missing=UNK)


def rows_of_words(order: np.ndarray, n_words: int) -> np.ndarray:
    """int32[n_words]: row N_SPECIAL + k for the k-th of the distinct words `order`, UNK for the others."""
    rows = np.full(n_words, UNK, np.int32)
    rows[order] = np.arange(N_SPECIAL, N_SPECIAL + len(order))
    return rows


def char_codes(text: str) -> np.ndarray:
    """int64[T] code points."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.int64)


def bigram_codes(chars: np.ndarray) -> np.ndarray:
    """int64[T]: bigram i consists of characters i and i + 1, the last one of the last character and END."""
    following = np.append(chars[1:], END) if len(chars) else chars
    return (chars << BIGRAM_SHIFT) | following


def split_bigram(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The two code points of each bigram; the second is END for the last bigram of a sentence."""
    return codes >> BIGRAM_SHIFT, codes & END


def code_of(token: str) -> int | None:
    """The code of a character, a bigram or `c</s>`, as they are written in vector files; None for other tokens."""
    if token.endswith("</s>") and len(token) == 5:
        return (ord(token[0]) << BIGRAM_SHIFT) | END
    if len(token) == 1:
        return ord(token)
    if len(token) == 2:
        return (ord(token[0]) << BIGRAM_SHIFT) | ord(token[1])
    return None


@dataclass(frozen=True)
class EncodedLattice:
    """A lattice as rows of the embedding tables.

    Attributes:
        chars, bigrams: int64[T] rows.
        words: int64[W] rows; starts, ends: int64[W] half-open spans, as in the lattice.
        counts, groups: int64[W], the word_counts and word_groups of Vocabulary for each word; 0 for user words.
        text: the normalised text, which a BERT tokenises itself.
        word_labels: int64[W], the label of each word: 0 for no label, k + 1 for the k-th of Vocabulary.word_labels, and
            one more than their number for a label that the model does not know. All 0 by default.
    """

    chars: np.ndarray
    bigrams: np.ndarray
    words: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    counts: np.ndarray
    groups: np.ndarray
    text: str
    word_labels: np.ndarray = field(default=None)  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        if self.word_labels is None:
            object.__setattr__(self, "word_labels", np.zeros(len(self.words), np.int64))

    @property
    def n_nodes(self) -> int:
        return len(self.chars) + len(self.words)


@dataclass(frozen=True)
class Vocabulary:
    """The rows of a lattice model's three tables. Rows that occur in training come first; only these are trained.

    Attributes:
        chars: character code point -> row.
        bigrams: pair of code points -> row.
        word_rows: int32[n_base], the row of each word of the base lexicon (UNK if it has no vector).
        n_tuned: numbers of rows that training may change, including special rows: (chars, bigrams, words).
        n_rows: total numbers of rows: (chars, bigrams, words).
        word_counts: int32[n_base], how often each word occurs in the training text; None if the model does not use it.
        word_groups: int32[n_base], the gazetteers of each word, one bit per gazetteer; None if there is only one.
        n_groups: number of gazetteers, of which the first is the lexicon itself.
        gazetteers: the names of the others; empty in folders of older models.
        word_labels: the K labels of user words that the model knows; empty if it reads no labels.
        components: the components of characters; None if the model does not read them.
    """

    chars: CodeTable
    bigrams: CodeTable
    word_rows: np.ndarray
    n_tuned: tuple[int, int, int]
    n_rows: tuple[int, int, int]
    word_counts: np.ndarray | None = None
    word_groups: np.ndarray | None = None
    n_groups: int = 1
    gazetteers: tuple[str, ...] = ()
    word_labels: tuple[str, ...] = ()
    components: ComponentTable | None = None

    @property
    def user_count(self) -> int:
        """The count that is used for user words: the mean count of the words that occur in the training text."""
        used = self.word_counts[self.word_counts > 0] if self.word_counts is not None else np.ones(1)
        return max(1, round(float(used.mean()))) if len(used) else 1

    def encode(self, lattice: Lattice) -> EncodedLattice:
        codes = char_codes(lattice.text)
        ids = lattice.words[:, 2]
        is_base = ids < len(self.word_rows)

        def of_base(values: np.ndarray | None, *, user: int) -> np.ndarray:
            of_words = np.full(len(ids), user, np.int64)
            if values is not None:
                of_words[is_base] = values[ids[is_base]]
            return of_words

        return EncodedLattice(
            chars=self.chars.look_up(codes),
            bigrams=self.bigrams.look_up(bigram_codes(codes)),
            words=of_base(self.word_rows, user=USER),
            starts=lattice.words[:, 0].astype(np.int64),
            ends=lattice.words[:, 1].astype(np.int64),
            counts=of_base(self.word_counts, user=0),
            groups=is_base.astype(np.int64) if self.word_groups is None else of_base(self.word_groups, user=0),
            text=lattice.text,
            word_labels=self.label_ids(lattice),
        )

    @cached_property
    def gazetteer_sets(self) -> np.ndarray:
        """bool[C, n_groups - 1]: the distinct sets of gazetteers of the base words, the empty set first."""
        return (_distinct(self._groups & ~1)[:, None] >> np.arange(1, self.n_groups) & 1).astype(bool)

    @cached_property
    def _groups(self) -> np.ndarray:
        """int32[G]: the distinct `word_groups` and 0, ascending."""
        groups = np.zeros(0, np.int32) if self.word_groups is None else self.word_groups
        return _distinct(np.append(groups, np.int32(0)))

    @cached_property
    def _set_ids(self) -> np.ndarray:
        """int32[G]: what `label_and_set_ids` has for base words of each of `_groups`: 0 for the empty set, and for the
        other rows of `gazetteer_sets` the numbers after those of the labels."""
        sets = self._groups & ~1
        rows = np.searchsorted(_distinct(sets), sets)
        return np.where(rows > 0, len(self.word_labels) + 1 + rows, 0).astype(np.int32)

    def label_ids(self, *lattices: Lattice) -> np.ndarray:
        """int64[W]: the label of each word of some lattices, as in EncodedLattice.word_labels."""
        ids, first = np.zeros(sum(len(lattice.words) for lattice in lattices), np.int64), 0
        if not any(lattice.user_labels for lattice in lattices):  # nearly always
            return ids
        known = {label: k for k, label in enumerate(self.word_labels, start=1)}
        for lattice in lattices:
            if lattice.user_labels:
                for row, label in lattice.labelled_words:
                    ids[first + row] = known.get(label, len(known) + 1)
            first += len(lattice.words)
        return ids

    def label_and_set_ids(self, *lattices: Lattice) -> np.ndarray:
        """int32[W]: as `label_ids`; in addition, a base word with gazetteers has the number of its set, which follows
        the numbers of labels. This is how runtimes read both from one table (see `runtime.component_rows`)."""
        words = np.concatenate([lattice.words[:, 2] for lattice in lattices])
        is_user = words >= len(self.word_rows)
        if not is_user.any():  # nearly always
            return self._set_ids_of(words)
        ids = self.label_ids(*lattices).astype(np.int32)
        ids[~is_user] = self._set_ids_of(words[~is_user])
        return ids

    def _set_ids_of(self, words: np.ndarray) -> np.ndarray:
        if self.word_groups is None:
            return np.zeros(len(words), np.int32)
        return self._set_ids[self._groups.searchsorted(self.word_groups[words])]


def _distinct(values: np.ndarray) -> np.ndarray:
    """The distinct values, ascending; np.unique imports numpy.ma, which takes 20 ms."""
    ordered = np.sort(values)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])]


def seen_first(lattices: Iterable[Lattice], n_base: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct (character codes, bigram codes, word ids) of some lattices, each ascending."""
    chars, bigrams, words = ([np.zeros(0, np.int64)] for _ in range(3))
    for lattice in lattices:
        chars.append(char_codes(lattice.text))
        bigrams.append(bigram_codes(chars[-1]))
        ids = lattice.words[:, 2]
        words.append(ids[ids < n_base])
    return np.unique(np.concatenate(chars)), np.unique(np.concatenate(bigrams)), np.unique(np.concatenate(words))


def count_words(lattices: Iterable[Lattice], n_base: int) -> np.ndarray:
    """int32[n_base]: the number of occurrences of each base word that are not covered by a longer matched base word (Ma
    et al. 2020, §3.2, and DCSAN's z). The released codes take the longest match first and remove the words within it
    from a list of strings, so that they sometimes remove another occurrence of the same word; here, each occurrence is
    handled separately."""
    counts = np.zeros(n_base, np.int32)
    for lattice in lattices:
        words = lattice.words[lattice.words[:, 2] < n_base]
        # Sorted by start, longer words first: a word is covered if and only if a previous one ends at or after its end.
        order = np.lexsort((-words[:, 1], words[:, 0]))
        words = words[order]
        reach = np.maximum.accumulate(words[:, 1]) if len(words) else words[:, 1]
        covered = np.zeros(len(words), bool)
        covered[1:] = words[1:, 1] <= reach[:-1]
        np.add.at(counts, words[~covered, 2], 1)
    return counts
