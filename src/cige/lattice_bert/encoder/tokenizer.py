"""LatticeTokenizer: converts texts to lattices of tokens, and these to the input of a Lattice-BERT."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from cige.lattice_bert.encoder.joint_vocabulary import JointVocabulary
from cige.lattice_bert.encoder.token_inputs import TokenInputs, token_inputs
from cige.lattice_bert.encoder.token_lattice import TokenLattice
from cige.lattice_bert.encoder.word_pieces import PieceSequence

_BLOCK_CHARS = 1 << 16  # size of a block: limits memory, and avoids a call for each short text


@dataclass(frozen=True)
class TokenLines:
    """The lattices of n texts in one; pieces and tokens are numbered from those of the first text.

    Attributes:
        texts: the texts.
        ids, starts, ends: int32[n_tokens], as in a TokenLattice.
        piece_starts, piece_ends: int32[n_pieces], half-open, in code points of the texts joined with line feeds.
        line_tokens, line_pieces: int64[n + 1], the first token and piece of each text, then their number.
    """

    texts: Sequence[str]
    ids: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    piece_starts: np.ndarray
    piece_ends: np.ndarray
    line_tokens: np.ndarray
    line_pieces: np.ndarray


class LatticeTokenizer:
    """Converts texts to lattices of tokens, in time linear in the length of the text and the number of tokens.

    Args:
        vocabulary: word pieces and words.
        use_words: False finds only pieces, the input of a character BERT.
    """

    def __init__(self, vocabulary: JointVocabulary, *, use_words: bool = True) -> None:
        self.vocabulary = vocabulary
        self.use_words = use_words
        self._cutter = vocabulary.cutter
        self._find = vocabulary.matcher.find if use_words and vocabulary.n_words else None

    def __reduce__(self) -> tuple[object, ...]:
        return partial(LatticeTokenizer, use_words=self.use_words), (self.vocabulary,)

    def tokenize(self, text: str) -> TokenLattice:
        """The lattice of one text, which may be any str. For many short texts, `tokenize_all` is faster."""
        pieces = self._cutter.split(text)
        ids, starts, ends, _ = self._tokens(pieces)
        return TokenLattice(
            text=text, ids=ids, starts=starts, ends=ends, piece_starts=pieces.starts, piece_ends=pieces.ends
        )

    def tokenize_all(self, texts: Iterable[str]) -> Iterator[TokenLattice]:
        """The lattice of each text, in order, as `tokenize` returns it; texts are processed in blocks."""
        for block in _blocks(texts):
            yield from self._tokenize_block(block)

    def encode(
        self,
        first: str | TokenLattice,
        second: str | TokenLattice | None = None,
        *,
        max_tokens: int | None = None,
        max_chars: int | None = None,
    ) -> TokenInputs:
        """The input of a model: [CLS] first [SEP] or [CLS] first [SEP] second [SEP].

        If the input is too long, pieces are removed one by one from the end of the longer text, and words that contain
        them are removed too. `n_cut_first` and `n_cut_second` of the result are the numbers of removed pieces.

        Args:
            first, second: texts, or lattices of this tokenizer or parts of them.
            max_tokens, max_chars: maximum numbers of lattice tokens and of positions, including special tokens, for
                which there must be room (ValueError).
        """
        texts = [first] if second is None else [first, second]
        lattices = [self.tokenize(text) if isinstance(text, str) else text for text in texts]
        return token_inputs(lattices, vocabulary=self.vocabulary, max_tokens=max_tokens, max_chars=max_chars)

    def tokenize_lines(self, texts: Iterable[str]) -> Iterator[TokenLines]:
        """The lattices of many texts as flat arrays, a block at a time; the fastest way to tokenise a corpus."""
        return map(self._flat, _blocks(texts))

    def _tokenize_block(self, texts: list[str]) -> Iterator[TokenLattice]:
        flat = self._flat(texts)
        pieces, tokens = flat.line_pieces.tolist(), flat.line_tokens.tolist()
        begins = np.cumsum([0, *(len(text) + 1 for text in texts)])
        for k, text in enumerate(texts):
            begin, piece = np.int32(begins[k]), np.int32(pieces[k])
            of_tokens, of_pieces = slice(tokens[k], tokens[k + 1]), slice(pieces[k], pieces[k + 1])
            yield TokenLattice(
                text=text,
                ids=flat.ids[of_tokens].copy(),  # a view would keep the arrays of the whole block
                starts=flat.starts[of_tokens] - piece,
                ends=flat.ends[of_tokens] - piece,
                piece_starts=flat.piece_starts[of_pieces] - begin,
                piece_ends=flat.piece_ends[of_pieces] - begin,
            )

    def _flat(self, texts: list[str]) -> TokenLines:
        pieces = self._cutter.split("\n".join(texts))
        ids, starts, ends, n_until = self._tokens(pieces)
        sizes = np.fromiter(map(len, texts), np.int64, len(texts)) + 1
        line_pieces = np.searchsorted(pieces.starts, np.concatenate([[0], np.cumsum(sizes)]))
        return TokenLines(
            texts=texts,
            ids=ids,
            starts=starts,
            ends=ends,
            piece_starts=pieces.starts,
            piece_ends=pieces.ends,
            line_tokens=n_until[line_pieces],
            line_pieces=line_pieces,
        )

    def _tokens(self, pieces: PieceSequence) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(ids, starts, ends of the tokens in order, int64[P + 1]: how many of them end within the first p pieces)."""
        n = len(pieces.ids)
        number = np.arange(n, dtype=np.int32)
        words = self._words(pieces)
        if not len(words):
            return pieces.ids, number, number + 1, np.arange(n + 1)
        starts, ends = pieces.n_before[words[:, 0]], pieces.n_before[words[:, 1]]
        n_ending = np.bincount(ends, minlength=n + 1)
        n_words_until = np.cumsum(n_ending)
        n_until = n_words_until + np.arange(n + 1)
        # Words with the same end are sorted long to short, and tokens short to long, so their order is reversed.
        place_of_word = 2 * n_words_until[ends] - n_ending[ends] - 1 - np.arange(len(words)) + ends
        place_of_piece = n_until[:-1]
        total = n + len(words)
        out = np.empty((3, total), dtype=np.int32)
        out[0, place_of_piece], out[1, place_of_piece], out[2, place_of_piece] = pieces.ids, number, number + 1
        out[0, place_of_word] = words[:, 2] + self.vocabulary.n_pieces
        out[1, place_of_word], out[2, place_of_word] = starts, ends
        return out[0], out[1], out[2], n_until

    def _words(self, pieces: PieceSequence) -> np.ndarray:
        """int32[W, 3]: (start, end) in the normal form and number of each word, by end, then from long to short."""
        words = self._find(pieces.normal) if self._find else np.zeros((0, 3), np.int32)
        words = words[np.lexsort((words[:, 0], words[:, 1]))]
        is_sound = pieces.is_edge[words[:, 0]] & pieces.is_edge[words[:, 1]]
        return words[is_sound]


def _blocks(texts: Iterable[str]) -> Iterator[list[str]]:
    block: list[str] = []
    n_chars = 0
    for text in texts:
        block.append(text)
        n_chars += len(text) + 1
        if n_chars >= _BLOCK_CHARS:
            yield block
            block, n_chars = [], 0
    if block:
        yield block
