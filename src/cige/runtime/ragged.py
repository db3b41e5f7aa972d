"""RaggedLattices: the concatenated lattices of a batch, without padding, as rows of the vocabulary's tables.

There are two implementations with equal results: NumPy, in this module, and the C function of `runtime.native`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cige.data.vocabulary import BIGRAM_SHIFT, END, USER, Vocabulary, bigram_codes, char_codes
from cige.lattice.lattice import Lattice
from cige.runtime.native import Library, Struct, address


@dataclass(frozen=True)
class RaggedLattices:
    """The input of a model for B sentences.

    Attributes:
        n_chars, n_words: int32[B].
        chars, bigrams: int32[sum of n_chars], rows of the tables.
        words, starts, ends: int32[sum of n_words], rows and half-open spans.
        word_ids: int32[sum of n_words], numbers of the words in their lexicon.
        labels: int32[sum of n_words], the label of each word (see EncodedLattice); None if no word has a label.
    """

    n_chars: np.ndarray
    n_words: np.ndarray
    chars: np.ndarray
    bigrams: np.ndarray
    words: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    word_ids: np.ndarray
    labels: np.ndarray | None

    @property
    def bounds(self) -> list[tuple[slice, slice]]:
        """The slices of the characters and of the words of each sentence."""
        chars, words = ([0, *np.cumsum(n).tolist()] for n in (self.n_chars, self.n_words))
        return [(slice(chars[b], chars[b + 1]), slice(words[b], words[b + 1])) for b in range(len(self.n_chars))]


def joined(lattices: Sequence[Lattice]) -> tuple[np.ndarray, np.ndarray, str, np.ndarray]:
    """int32[B] numbers of characters and of words, the joined texts, and int32[sum of words, 3], all words."""
    n_chars = np.array([len(lattice.text) for lattice in lattices], np.int32)
    n_words = np.array([len(lattice.words) for lattice in lattices], np.int32)
    if len(lattices) == 1:
        return n_chars, n_words, lattices[0].text, np.ascontiguousarray(lattices[0].words, np.int32)
    matches = np.concatenate([lattice.words for lattice in lattices], dtype=np.int32)
    return n_chars, n_words, "".join([lattice.text for lattice in lattices]), matches


def packed(lattices: Sequence[Lattice], labels: np.ndarray | None, library: Library) -> Struct:
    """The struct Lattices of native/rows_of_tables.h, with `labels` as in RaggedLattices."""
    n_chars, n_words, text, matches = joined(lattices)
    return library.struct(
        "Lattices",
        n_sentences=len(lattices),
        total_chars=len(text),
        total_words=len(matches),
        n_chars=n_chars,
        n_words=n_words,
        codes=np.frombuffer(bytearray(text.encode("utf-32-le", "surrogatepass")), np.uint32),
        matches=matches,
        labels=labels,
    )


def closed_chars(lattices: Sequence[Lattice]) -> np.ndarray | None:
    """bool[sum of n_chars], which characters are in a closed stretch of their lattice; None if none are."""
    if not any(lattice.closed for lattice in lattices):
        return None
    is_closed, first = np.zeros(sum(len(lattice.text) for lattice in lattices), bool), 0
    for lattice in lattices:
        for start, end in lattice.closed:
            is_closed[first + start : first + end] = True
        first += len(lattice.text)
    return is_closed


def padded(rows: np.ndarray, n_chars: np.ndarray, width: int) -> np.ndarray:
    """Pad float32[sum of n_chars, width or more] to float32[B, maximum of n_chars and 1, width]."""
    out = np.zeros((len(n_chars), max(1, int(n_chars.max())), width), np.float32)
    first = 0
    for row, n in zip(out, n_chars.tolist(), strict=True):
        row[:n] = rows[first : first + n, :width]
        first += n
    return out


class RowReader:
    """Converts lattices to RaggedLattices with the vocabulary of a model, in NumPy if there is no `library`.

    Args:
        reads_gazetteers: whether the network adds vectors of the gazetteers of a word to its vector.

    Attributes:
        struct: the struct Vocabulary of native/rows_of_tables.h, for the compiled runtime only.
    """

    def __init__(self, vocabulary: Vocabulary, library: Library | None, *, reads_gazetteers: bool = False):
        self._vocabulary = vocabulary
        self._library = library
        self._has_gazetteers = reads_gazetteers and vocabulary.word_groups is not None
        if library is not None:
            word_rows = np.ascontiguousarray(vocabulary.word_rows, np.int32)
            chars, pairs = vocabulary.chars, vocabulary.bigrams
            codes = np.ascontiguousarray(pairs.codes, np.int64)
            of_first = codes >> BIGRAM_SHIFT
            begin = np.append(0, np.flatnonzero(of_first[1:] != of_first[:-1]) + 1)[: len(codes)]
            bigrams = library.struct(
                "Pairs",
                firsts=_hashed(of_first[begin], np.arange(len(begin)) + 2, library),
                n_firsts=len(begin),
                begin=np.append(begin, len(codes)).astype(np.int32),
                n_codes=len(codes),
                codes=codes,
                rows=np.ascontiguousarray(pairs.rows, np.int32),
            )
            chars_of = _hashed(chars.codes, chars.rows, library)
            self.struct = library.struct(
                "Vocabulary", chars=chars_of, bigrams=bigrams, word_rows=word_rows, n_base=len(word_rows)
            )
            library.model(vocabulary=self.struct)

    def __call__(self, lattices: Sequence[Lattice]) -> RaggedLattices:
        if self._library is None:
            return self._read(lattices)
        labels = self.labels(lattices)
        given = packed(lattices, labels, self._library)
        chars, bigrams = np.empty((2, given.total_chars), np.int32)
        words, starts, ends = np.empty((3, given.total_words), np.int32)
        outputs = {"chars": chars, "bigrams": bigrams, "words": words, "starts": starts, "ends": ends}
        self._library.rows_of_lattices(self.struct, given, self._library.struct("RowsOfTables", **outputs))
        own = given.values
        return RaggedLattices(own["n_chars"], own["n_words"], **outputs, word_ids=own["matches"][:, 2], labels=labels)

    def labels(self, lattices: Sequence[Lattice]) -> np.ndarray | None:
        """int32[sum of n_words]; see RaggedLattices.labels."""
        if self._has_gazetteers:
            return self._vocabulary.label_and_set_ids(*lattices)
        if not any(lattice.user_labels for lattice in lattices):
            return None
        return self._vocabulary.label_ids(*lattices).astype(np.int32)

    def _read(self, lattices: Sequence[Lattice]) -> RaggedLattices:
        n_chars, n_words, text, matches = joined(lattices)
        known = self._vocabulary
        codes = char_codes(text)
        pairs = bigram_codes(codes)
        last = np.cumsum(n_chars)[n_chars > 0] - 1
        pairs[last] |= END  # the last character of a sentence forms a bigram with END, not with the next sentence
        ids = matches[:, 2]
        words = np.full(len(ids), USER, np.int32)
        is_base = ids < len(known.word_rows)
        words[is_base] = known.word_rows[ids[is_base]]
        rows = (known.chars.look_up(codes).astype(np.int32), known.bigrams.look_up(pairs).astype(np.int32))
        starts, ends = np.ascontiguousarray(matches[:, :2].T)
        return RaggedLattices(n_chars, n_words, *rows, words, starts, ends, ids, self.labels(lattices))


def _hashed(codes: np.ndarray, rows: np.ndarray, library: Library) -> Struct:
    """The struct Codes, a hash table with a load factor of at most one half."""
    bits = max(1, (2 * len(codes)).bit_length())
    keys, values = np.zeros(1 << bits, np.uint64), np.zeros(1 << bits, np.int32)
    codes, rows = np.ascontiguousarray(codes, np.int64), np.ascontiguousarray(rows, np.int32)
    library.fill_codes(address(codes), address(rows), len(codes), bits, address(keys), address(values))
    return library.struct("Codes", keys=keys, rows=values, bits=bits)
