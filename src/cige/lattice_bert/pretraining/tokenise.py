"""Tokenise documents to the arrays of a shard: their lattices, and the words of one segmentation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from cige.lattice_bert.encoder.joint_vocabulary import JointVocabulary
from cige.lattice_bert.encoder.tokenizer import LatticeTokenizer, TokenLines
from cige.lattice_bert.pretraining.corpus import cut_line
from cige.lattice_bert.pretraining.shards import NO_LINES, Shard, joined
from cige.lexicon.word_counts import jieba_segmenter
from cige.text.normalize import fold_width


class DocumentTokenizer:
    """Tokenises lines, and segments them with jieba for whole-word masking of characters.

    The words of the joint vocabulary come from jieba as well, so the baseline of characters and the lattice model get
    their words from the same segmenter.

    Args:
        max_tokens: a line with more lattice tokens is cut in two, repeatedly if needed.
        segment_words: whether to segment words; otherwise every piece is a separate word.
    """

    def __init__(self, vocabulary: JointVocabulary, *, max_tokens: int, segment_words: bool):
        self._tokenizer = LatticeTokenizer(vocabulary)
        self._max_tokens = max_tokens
        self._segment = jieba_segmenter() if segment_words else None

    def shard(self, documents: Sequence[Sequence[str]]) -> tuple[Shard, np.ndarray]:
        """Tokenise documents; lines without tokens and documents without lines are left out.

        Returns:
            The shard, and bool[len(documents)]: which documents are in it.
        """
        of_blocks = [NO_LINES]
        n_parts: list[int] = []  # of each line, 0 if it has no tokens
        for block in self._tokenizer.tokenize_lines(line for document in documents for line in document):
            for lines, parts in self._lines_of(block):
                of_blocks.append(lines)
                n_parts += parts
        ends = np.cumsum([0, *map(len, documents)])
        n_until = np.concatenate([[0], np.cumsum(n_parts, dtype=np.int64)])[ends]  # lines until each document
        is_kept = np.diff(n_until) > 0
        document_lines = np.concatenate([[0], n_until[1:][is_kept]]).astype(np.int64)
        return replace(joined(of_blocks), document_lines=document_lines), is_kept

    def _lines_of(self, block: TokenLines) -> Iterator[tuple[Shard, list[int]]]:
        """The lines of a block that have tokens in stretches, without documents, and the number of parts of each line
        of the block."""
        n_tokens = np.diff(block.line_tokens)
        too_long = [k for k in np.flatnonzero(n_tokens > self._max_tokens).tolist() if len(block.texts[k]) > 1]
        begin = 0
        for k in [*too_long, len(block.texts)]:
            if begin < k:
                yield self._stretch(block, begin, k), (n_tokens[begin:k] > 0).astype(int).tolist()
            if k < len(block.texts):
                text = block.texts[k]
                parts, _ = cut_line(text, len(text) // 2)
                n_parts = 0
                for part_block in self._tokenizer.tokenize_lines(parts):
                    for lines, part in self._lines_of(part_block):
                        n_parts += sum(part)
                        yield lines, []
                yield NO_LINES, [n_parts]
            begin = k + 1

    def _stretch(self, block: TokenLines, begin: int, end: int) -> Shard:
        """Lines [begin, end) of a block."""
        tokens = slice(int(block.line_tokens[begin]), int(block.line_tokens[end]))
        first_piece, starts = int(block.line_pieces[begin]), block.starts[tokens]
        return replace(
            NO_LINES,
            ids=block.ids[tokens],
            starts=starts - np.int32(first_piece),
            lengths=(block.ends[tokens] - starts).astype(np.uint16),
            line_tokens=np.unique(block.line_tokens[begin : end + 1]) - tokens.start,  # of lines with tokens
            line_pieces=np.unique(block.line_pieces[begin : end + 1]) - first_piece,
            word_starts=self._word_starts(block, begin, end),
        )

    def _word_starts(self, block: TokenLines, begin: int, end: int) -> np.ndarray:
        """bool[n_pieces] of lines [begin, end): where words begin; words that begin inside a piece are left out."""
        first, last = int(block.line_pieces[begin]), int(block.line_pieces[end])
        if self._segment is None:
            return np.ones(last - first, np.bool_)
        n_before = sum(map(len, block.texts[:begin])) + begin
        lengths: list[int] = []
        for text in block.texts[begin:end]:
            lengths += map(len, self._segment(fold_width(text)))
            lengths.append(1)  # the line feed
        begins = np.zeros(sum(lengths) + 1, np.bool_)
        begins[np.cumsum([0, *lengths])] = True
        starts = begins[block.piece_starts[first:last] - n_before]
        firsts = block.line_pieces[begin:end][np.diff(block.line_pieces[begin : end + 1]) > 0]
        starts[firsts - first] = True
        return starts
