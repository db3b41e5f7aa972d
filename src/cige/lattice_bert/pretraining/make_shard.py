"""Convert one unit of a corpus to one shard, in any process of any machine; existing shards are kept."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from cige.errors import DataError
from cige.folders.manifest import MANIFEST, sha256
from cige.json_text import JsonObject, to_json
from cige.lattice_bert.encoder.joint_vocabulary import JointVocabulary
from cige.lattice_bert.encoder.tokenizer import LatticeTokenizer, TokenLines
from cige.lattice_bert.pretraining.corpus import CorpusReport, CorpusRules, cut_line, documents_of
from cige.lattice_bert.pretraining.shards import NO_LINES, Shard, ShardEntry, check_shard, joined, write_shard
from cige.lattice_bert.pretraining.units import Unit
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
        stretches = [NO_LINES]
        n_parts: list[int] = []  # of each line
        for lines, parts in self._lines_of(line for document in documents for line in document):
            stretches.append(lines)
            n_parts += parts
        ends = np.cumsum([0, *map(len, documents)])
        n_until = np.concatenate([[0], np.cumsum(n_parts, dtype=np.int64)])[ends]  # lines until each document
        is_kept = np.diff(n_until) > 0
        document_lines = np.concatenate([[0], n_until[1:][is_kept]]).astype(np.int64)
        return replace(joined(stretches), document_lines=document_lines), is_kept

    def _lines_of(self, texts: Iterable[str]) -> Iterator[tuple[Shard, list[int]]]:
        """Lines in stretches, without documents, and the number of parts of each: 0 for one without tokens."""
        for block in self._tokenizer.tokenize_lines(texts):
            n_tokens = np.diff(block.line_tokens)
            too_long = [k for k in np.flatnonzero(n_tokens > self._max_tokens).tolist() if len(block.texts[k]) > 1]
            begin = 0
            for k in [*too_long, len(block.texts)]:
                if begin < k:
                    yield self._stretch(block, begin, k), (n_tokens[begin:k] > 0).astype(int).tolist()
                if k < len(block.texts):
                    text = block.texts[k]
                    halves = list(self._lines_of(cut_line(text, len(text) // 2)[0]))
                    yield joined([NO_LINES, *(lines for lines, _ in halves)]), [sum(sum(n) for _, n in halves)]
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


VOCABULARY, SHARD_NAME = "vocabulary", "shard-{:05}"
_GOLDEN = 0.6180339887498949  # multiples of it, modulo 1, are spread evenly


@dataclass(frozen=True)
class DataSettings:
    """The settings that determine the shards, in addition to the corpus and the vocabulary.

    Attributes:
        max_line_tokens: a line with more lattice tokens is cut in two at punctuation, which is better than cutting it
            where an instance is full.
        segment_words: whether to segment words with jieba, which whole-word masking of characters needs and which takes
            most of the time.
        held_out: every n-th document is held out for evaluation; 0 holds out none.
        shard_size: approximate number of Chinese characters per shard; a shard has at least three times as many bytes
            of text, except the last.
    """

    rules: CorpusRules = field(default_factory=CorpusRules)
    max_line_tokens: int = 170
    segment_words: bool = True
    held_out: int = 200
    shard_size: int = 1_000_000


@dataclass(frozen=True)
class ShardJob:
    """The common inputs of all shards of a data folder."""

    folder: Path  # of the data, which contains the vocabulary, on storage that all processes share
    vocabulary: str  # its fingerprint
    settings: DataSettings

    def make(self, unit: Unit) -> ShardEntry:
        """Write the shard of a unit unless it exists; returns its entry in the index of the data. Raises a DataError if
        the shard exists and was made from something else, or another CigeError if the text cannot be read."""
        folder = self.folder / SHARD_NAME.format(unit.number)
        origin = self._origin(unit)
        if folder.exists():
            facts = check_shard(folder)
            if facts.get("origin") != origin:
                raise DataError(
                    f"{folder}: made from another corpus or with other settings; use those again, or choose another "
                    "output folder"
                )
        else:
            facts = self._write(unit, folder, origin)
        return {
            "name": folder.name,
            "text": [[stretch.path, stretch.start, stretch.stop] for stretch in unit.stretches],
            "sha256": sha256(folder / MANIFEST),
            "n_documents": facts["n_documents"],
            "n_lines": facts["n_lines"],
            "n_pieces": facts["n_pieces"],
            "n_tokens": facts["n_tokens"],
            "held_out": facts["held_out"],
            "report": facts["report"],
        }

    def _write(self, unit: Unit, folder: Path, origin: str) -> JsonObject:
        report, rules, every = CorpusReport(), self.settings.rules, self.settings.held_out
        documents = [document for stretch in unit.stretches for document in documents_of(stretch, rules, report)]
        # A unit may have fewer documents than `every`, so units start counting at different numbers.
        counted = int(unit.number * _GOLDEN % 1 * every) + 1
        is_held_out = [every > 0 and number % every == 0 for number in range(counted, counted + len(documents))]
        order = np.argsort(is_held_out, kind="stable").tolist()  # those that are held out come last
        shard, is_kept = _tokenizer(self).shard([documents[k] for k in order])
        n_held_out = int(is_kept[len(order) - sum(is_held_out) :].sum())
        return write_shard(shard, folder, n_held_out=n_held_out, origin=origin, report=asdict(report))

    def _origin(self, unit: Unit) -> str:
        """sha256 (hex) of the text, the vocabulary and the settings."""
        digest = hashlib.sha256(to_json([self.vocabulary, asdict(self.settings)], sort_keys=True).encode())
        for stretch in unit.stretches:
            digest.update(f"\n{unit.number} {stretch.begins_inside:d} {stretch.ends_inside:d}\n".encode())
            digest.update(stretch.read())
        return digest.hexdigest()


@lru_cache(maxsize=1)
def _tokenizer(job: ShardJob) -> DocumentTokenizer:
    """The tokeniser of this process."""
    words = JointVocabulary.load(job.folder / VOCABULARY)
    if words.fingerprint != job.vocabulary:
        raise DataError(f"{job.folder / VOCABULARY}: not the vocabulary that the shards are made with; restore it")
    settings = job.settings
    return DocumentTokenizer(words, max_tokens=settings.max_line_tokens, segment_words=settings.segment_words)
