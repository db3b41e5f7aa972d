"""VectorTable: one vector per word, read from a file of any supported format."""

from __future__ import annotations

import hashlib
import os
import shutil
import zipfile
import zlib
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from cige.errors import LexiconError
from cige.folders.kinds import LEXICON, VECTORS
from cige.folders.manifest import kind_of
from cige.json_text import JsonObject
from cige.lexicon.base_words import BaseWords
from cige.lexicon.report import LoadReport, ReportBuilder
from cige.lexicon.storage import new_file, open_folder
from cige.lexicon.text_file import is_zip
from cige.lexicon.vector_files import open_vectors
from cige.lexicon.word_blob import BAD_HEADER, WordBlob, load_array
from cige.lexicon.word_rules import DUPLICATE

HASHES_FILE = "hashes.npy"
ROWS_FILE = "rows.npy"
VECTORS_FILE, PRESENT_FILE = "vectors.npy", "present.npy"
VectorLength = Literal["own", "unit"]
"""Whether the initial vectors of a model are used unchanged or scaled to length 1."""


def word_hash(word: str) -> int:
    """A 64-bit hash that is the same on every machine and in every run."""
    return int.from_bytes(hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


@dataclass(frozen=True)
class HashIndex:
    """Finds the rows of words by hash; if two words have the same hash, the words themselves are compared.

    Attributes:
        hashes: uint64[V], ascending.
        rows: uint32[V], the row of each.
        words: the V words by row.
    """

    hashes: np.ndarray
    rows: np.ndarray
    words: WordBlob

    @classmethod
    def build(cls, words: WordBlob) -> HashIndex:
        hashes = np.fromiter(map(word_hash, words), dtype=np.uint64, count=len(words))
        order = np.argsort(hashes, kind="stable")
        return cls(hashes=hashes[order], rows=order.astype(np.uint32), words=words)

    @classmethod
    def load(cls, folder: Path, words: WordBlob) -> HashIndex:
        return cls(hashes=load_array(folder / HASHES_FILE), rows=load_array(folder / ROWS_FILE), words=words)

    def save(self, folder: Path) -> None:
        np.save(folder / HASHES_FILE, self.hashes)
        np.save(folder / ROWS_FILE, self.rows)

    def find(self, words: Iterable[str]) -> np.ndarray:
        """int64[n]: the row of each word, or -1 if it has none."""
        words = list(words)
        wanted = np.fromiter(map(word_hash, words), dtype=np.uint64, count=len(words))
        places = np.searchsorted(self.hashes, wanted)
        numbers = np.full(len(words), -1, dtype=np.int64)
        for i, (word, place) in enumerate(zip(words, places.tolist(), strict=True)):
            while place < len(self.hashes) and self.hashes[place] == wanted[i]:
                row = int(self.rows[place])
                if self.words[row] == word:
                    numbers[i] = row
                    break
                place += 1
        return numbers


class VectorTable:
    """Words and their vectors.

    Attributes:
        words: the V words, in the order of rows.
        vectors: float16 or float32 [V, width].
        counts: int[V], how often each word occurred in training, or None.
        present: bool[V], which rows have a vector, or None if all have; only tables aligned with a lexicon have gaps.
        report: which lines of a word2vec file were taken and refused; None for other files.
    """

    def __init__(
        self,
        words: Sequence[str],
        vectors: np.ndarray,
        *,
        counts: np.ndarray | None = None,
        present: np.ndarray | None = None,
        report: LoadReport | None = None,
        find: Callable[[Iterable[str]], np.ndarray] | None = None,
    ) -> None:
        if vectors.ndim != 2 or len(vectors) != len(words):
            raise LexiconError(f"{len(words):,} words for vectors of shape {vectors.shape}: expected one row per word")
        self.words = words
        self.vectors = vectors
        self.counts = counts
        self.present = present
        self.report = report
        self._find = find  # words -> int64[n] rows, -1 for words without a row

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> VectorTable:
        """Read vectors. The format is detected by content: an .npz file that `train_vectors` wrote, word2vec text
        (plain, .gz, .xz) or binary, or a folder that `convert_vectors` or `build_with_vectors` wrote, which is mapped
        from disk. Raises a LexiconError if the file is missing, damaged or has another format."""
        path = Path(path)
        if path.is_dir():
            return cls._load_lexicon(path) if kind_of(path) == LEXICON else cls._load_folder(path)
        return cls._load_npz(path) if is_zip(path) else cls._load_word2vec(path)

    @classmethod
    def _load_lexicon(cls, folder: Path) -> VectorTable:
        facts = open_folder(folder, kind=LEXICON)
        if not facts.get("vectors"):
            raise LexiconError(
                f"{folder}: a lexicon without vectors; build it with `cige lexicon build --vectors`, or make a folder "
                "of vectors for it with `cige vectors convert --lexicon`"
            )
        base = BaseWords.load(folder, facts)
        return cls(base.words, _matrix(folder / VECTORS_FILE), find=base.matcher.rows)

    @classmethod
    def _load_folder(cls, folder: Path) -> VectorTable:
        facts = open_folder(folder, kind=VECTORS)  # checks only sizes, since the matrix may have gigabytes
        words = WordBlob.load(folder)
        present = load_array(folder / PRESENT_FILE) if facts.get("lexicon") else None
        if present is not None and (present.shape != (len(words),) or present.dtype != np.bool_):
            raise LexiconError(f"{folder / PRESENT_FILE}: not one truth value per word; convert the vectors again")
        index = HashIndex.load(folder, words)
        is_whole = index.hashes.dtype == np.uint64 and index.rows.dtype == np.uint32
        if not is_whole or not index.hashes.shape == index.rows.shape == (len(words),):
            raise LexiconError(f"{folder}: its index belongs to other words; convert the vectors again")
        if len(words) and int(index.rows.max()) >= len(words):
            raise LexiconError(f"{folder}: its index has a row beyond the last; convert the vectors again")
        return cls(words, _matrix(folder / VECTORS_FILE), present=present, find=index.find)

    @classmethod
    def _load_npz(cls, path: Path) -> VectorTable:
        try:
            with np.load(path, allow_pickle=False) as fields:
                words, vectors = fields["words"], fields["vectors"]
                counts = fields.get("counts")
        except KeyError as error:
            raise LexiconError(f"{path}: there is no field {error}; expected words, vectors, counts") from error
        except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error, *BAD_HEADER) as error:
            raise LexiconError(f"{path}: not a readable .npz file ({error}); get the file again") from error
        if (words.size and words.dtype.kind != "U") or words.ndim > 1 or vectors.dtype.kind != "f":
            raise LexiconError(f"{path}: {words.dtype} words and {vectors.dtype} vectors; get the file again")
        if counts is not None and (counts.shape != vectors.shape[:1] or counts.dtype.kind not in "iu"):
            raise LexiconError(f"{path}: counts that are no whole number for each vector; get the file again")
        listed = words.tolist() if words.ndim else str(words).split("\n") if str(words) else []
        try:
            return cls(listed, vectors, counts=counts)
        except LexiconError as error:
            raise LexiconError(f"{path}: {error}") from error

    @classmethod
    def _load_word2vec(cls, path: Path) -> VectorTable:
        source = open_vectors(path)
        report = ReportBuilder(source=str(path), format=source.format)
        words: dict[str, None] = {}
        numbers = array("f")
        for block in source.blocks(report):
            for line, word, vector in zip(block.lines, block.words, block.vectors, strict=True):
                if word in words:
                    report.refuse(line, word, DUPLICATE)
                else:
                    words[word] = None
                    numbers.frombytes(vector.tobytes())
        done = report.build(n_taken=len(words))
        if done.n_refused and not words:
            raise LexiconError(f"no usable vector\n{done}")
        vectors = np.frombuffer(numbers, dtype=np.float32).reshape(-1, source.width)
        return cls(list(words), vectors, report=done)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an .npz with the fields words (joined by newlines), vectors and counts (0 if unknown).

        Vectors are written as float16, unless a number is too large for it. Raises a LexiconError if writing failed; an
        older file is kept.
        """
        counts = np.zeros(len(self), dtype=np.int64) if self.counts is None else self.counts
        with np.errstate(over="ignore"):
            vectors = self.vectors.astype(np.float16)
        if not np.isfinite(vectors).all():
            vectors = self.vectors
        with new_file(path) as aside, open(aside, "wb") as file:
            np.savez_compressed(file, words=np.array("\n".join(self.words)), vectors=vectors, counts=counts)

    @property
    def width(self) -> int:
        return self.vectors.shape[1]

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self.row(word) >= 0

    def row(self, word: str) -> int:
        """The row of a word's vector, or -1 if it has none. The word must be normalised."""
        return int(self.rows([word])[0])

    def rows(self, words: Iterable[str]) -> np.ndarray:
        """int64[n]: the row of each word's vector, or -1 if it has none."""
        if self._find is None:
            self._find = _dict_find(self.words)
        rows = self._find(words)
        if self.present is not None:
            hit = rows >= 0
            rows[hit] = np.where(self.present[rows[hit]], rows[hit], -1)
        return rows


def _matrix(path: Path) -> np.ndarray:
    vectors = load_array(path)
    if vectors.dtype not in (np.float16, np.float32) or not vectors.flags.aligned:
        raise LexiconError(f"{path}: numbers of type {vectors.dtype}; expected float16 or float32")
    return vectors


def keep_vectors(folder: Path, aside: Path, fingerprint: str) -> JsonObject | None:
    """Copy the vectors of a lexicon folder to `aside`, which will replace it; returns their facts in the manifest.
    Raises a LexiconError if they are the vectors of other words than those with this fingerprint."""
    if not (folder / VECTORS_FILE).is_file():
        return None
    facts = open_folder(folder, kind=LEXICON)
    if facts["fingerprint"] != fingerprint:
        raise LexiconError(f"{folder}: holds the vectors of other words, which would be lost; give a new folder")
    try:
        # A link avoids copying gigabytes; the file is never changed in place.
        os.link(folder / VECTORS_FILE, aside / VECTORS_FILE)
    except OSError:
        shutil.copyfile(folder / VECTORS_FILE, aside / VECTORS_FILE)
    return dict(facts["vectors"])


def _dict_find(words: Sequence[str]) -> Callable[[Iterable[str]], np.ndarray]:
    last_first = range(len(words) - 1, -1, -1)
    index = dict(zip(reversed(words), last_first, strict=True))  # if a word occurs twice, its first row is used

    def find(wanted: Iterable[str]) -> np.ndarray:
        return np.fromiter((index.get(word, -1) for word in wanted), dtype=np.int64)

    return find
