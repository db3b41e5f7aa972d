"""Tokenise lines to lattices and to the words of one segmentation, in any of several processes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cige.lattice.token_lattice import TokenLattice
from cige.lattice.tokenizer import LatticeTokenizer
from cige.lexicon.joint_vocabulary import JointVocabulary
from cige.lexicon.word_counts import jieba_segmenter
from cige.pretraining.corpus import cut_line
from cige.pretraining.shards import TokenLine, pack, write_shard
from cige.text.normalize import fold_width


@dataclass(frozen=True)
class Packet:
    """The documents of one shard.

    Attributes:
        folder: folder of the shard.
        documents: the lines of each document.
        origin: fingerprint of the documents, the vocabulary and the settings.
    """

    folder: Path
    documents: list[tuple[str, ...]]
    origin: str


class LineTokenizer:
    """Tokenises lines, and segments them with jieba for whole-word masking of characters.

    The words of the joint vocabulary come from jieba as well, so the baseline of characters and the lattice model get
    their words from the same segmenter.

    Args:
        max_tokens: a line with more lattice tokens is cut in two, repeatedly if needed.
        segment_words: whether to segment words; otherwise every piece is a word of its own.
    """

    def __init__(self, vocabulary: JointVocabulary, *, max_tokens: int, segment_words: bool):
        self._tokenizer = LatticeTokenizer(vocabulary)
        self._max_tokens = max_tokens
        self._segment = jieba_segmenter() if segment_words else None

    def documents(self, documents: Sequence[Sequence[str]]) -> list[list[TokenLine]]:
        """The lines of each document; lines without tokens and documents without lines are left out."""
        lattices = self._tokenizer.tokenize_all(line for document in documents for line in document)
        found = [[part for _ in document for part in self._parts(next(lattices))] for document in documents]
        return [lines for lines in found if lines]

    def _parts(self, lattice: TokenLattice) -> Iterator[TokenLine]:
        if lattice.n_tokens > self._max_tokens and len(lattice.text) > 1:
            for part in cut_line(lattice.text, len(lattice.text) // 2)[0]:
                yield from self._parts(self._tokenizer.tokenize(part))
        elif lattice.n_tokens:
            yield TokenLine(lattice, self._word_starts(lattice))

    def _word_starts(self, lattice: TokenLattice) -> np.ndarray:
        """bool[n_pieces]: where words begin; words that begin inside a piece are left out."""
        if self._segment is None:
            return np.ones(lattice.n_pieces, np.bool_)
        begins = np.zeros(len(lattice.text) + 1, np.bool_)
        begins[np.cumsum([0, *map(len, self._segment(fold_width(lattice.text)))])] = True
        found = begins[lattice.piece_starts]
        found[:1] = True
        return found


def start_worker(vocabulary: str, max_tokens: int, segment_words: bool) -> None:
    """Create the tokeniser of this process."""
    global _tokenizer
    words = JointVocabulary.load(vocabulary)
    _tokenizer = LineTokenizer(words, max_tokens=max_tokens, segment_words=segment_words)


def write_packet(packet: Packet) -> str:
    """Tokenise a packet and write its shard; returns the shard's name."""
    write_shard(pack(_tokenizer.documents(packet.documents)), packet.folder, origin=packet.origin)
    return packet.folder.name


def fingerprint(settings: str, documents: Sequence[Sequence[str]]) -> str:
    """sha256 (hex) of the settings and documents of a shard."""
    digest = hashlib.sha256(settings.encode())
    for document in documents:
        digest.update("\n".join(["", *document, ""]).encode("utf-8", "backslashreplace"))
    return digest.hexdigest()


_tokenizer: LineTokenizer
