"""Convert word2vec files of any size to a folder of vectors, or to a lexicon with vectors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType

import numpy as np

from cige.errors import LexiconError
from cige.folders.kinds import LEXICON, VECTORS
from cige.lexicon.base_words import BaseWords
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.report import LoadReport, ReportBuilder
from cige.lexicon.storage import new_folder
from cige.lexicon.text_file import is_zip
from cige.lexicon.user_word import UserChanges
from cige.lexicon.vector_files import OnProgress, VectorBlock, open_vectors
from cige.lexicon.vectors import PRESENT_FILE, VECTORS_FILE, HashIndex, VectorTable
from cige.lexicon.word_blob import WORDS_FILE, WordBlob, finish_blob
from cige.lexicon.word_rules import DUPLICATE, reason_to_refuse
from cige.text.normalize import without_invisible

_BLOCK = 4096
DTYPE = "float16"  # of the vectors of a lexicon
DTYPES = ("float16", "float32")
OVERFLOW = "number too large for float16"


def convert_vectors(
    path: str | os.PathLike[str],
    out_folder: str | os.PathLike[str],
    *,
    lexicon: Lexicon | None = None,
    dtype: str = "float16",
    on_progress: OnProgress | None = None,
) -> LoadReport:
    """Stream vectors into a folder that `VectorTable.load` maps, written completely or not at all.

    The memory does not grow with the matrix: about 180 bytes per word without a lexicon, and one byte per word of the
    lexicon with one. The report lists the refused lines; with a lexicon, it also counts vectors of other words
    (n_skipped) and base words without a vector (n_missing). Raises a LexiconError if the file cannot be read, or the
    folder cannot be written.

    Args:
        path: word2vec text (plain, .gz, .xz) or binary, or an .npz file or a folder of this package.
        lexicon: if given, row i is the vector of its base word i, or zeros if there is none; present.npy says which
            words have a vector.
        dtype: "float16" or "float32".
        on_progress: called regularly with (bytes of the file read, bytes of the file).
    """
    if dtype not in DTYPES:
        raise LexiconError(f"dtype {dtype!r}: expected one of {', '.join(DTYPES)}")
    format, width, blocks_of = _opened(path)
    report = ReportBuilder(source=str(path), format=format)
    blocks = blocks_of(report, on_progress)
    with new_folder(out_folder, kind=VECTORS) as (aside, facts):
        if lexicon is None:
            words = write_rows(blocks, aside, width=width, dtype=dtype, report=report)
            n_taken = len(words)
        else:
            words = lexicon.words
            words.save(aside)
            with RowFile(aside / VECTORS_FILE, width=width, dtype=dtype) as matrix:
                present = _write_aligned(blocks, matrix, report, lexicon)
            np.save(aside / PRESENT_FILE, present)
            n_taken = int(present.sum())
            report.n_missing = len(present) - n_taken
        done = report.build(n_taken=n_taken)
        if done.n_refused and not done.n_taken and not done.n_skipped:
            raise LexiconError(f"no usable vector\n{done}")
        HashIndex.build(words).save(aside)
        facts.update(
            n_words=len(words),
            n_vectors=n_taken,
            width=width,
            dtype=dtype,
            source_format=format,
            lexicon=lexicon.fingerprint if lexicon is not None else None,
        )
    return done


def _opened(
    path: str | os.PathLike[str],
) -> tuple[str, int, Callable[[ReportBuilder, OnProgress | None], Iterator[VectorBlock]]]:
    """The format, the width and the blocks of vectors of a file of any supported format."""
    if Path(path).is_dir() or is_zip(path):
        table = VectorTable.load(path)
        return "folder" if Path(path).is_dir() else "npz", table.width, lambda report, on_progress: _table_blocks(table)
    source = open_vectors(path)
    return source.format, source.width, source.blocks


def _table_blocks(table: VectorTable) -> Iterator[VectorBlock]:
    rows = np.arange(len(table)) if table.present is None else np.flatnonzero(table.present)
    for begin in range(0, len(rows), _BLOCK):
        block = rows[begin : begin + _BLOCK]
        lines = (block + 1).tolist()
        yield VectorBlock(lines, [table.words[row - 1] for row in lines], table.vectors[block].astype(np.float32))


def _write_aligned(
    blocks: Iterator[VectorBlock], matrix: RowFile, report: ReportBuilder, lexicon: Lexicon
) -> np.ndarray:
    """Write the vectors of base words; returns bool[V], which of them have a vector."""
    present = np.zeros(len(lexicon), dtype=bool)
    matrix.extend(len(lexicon))
    for block in blocks:
        cast, fits = matrix.cast(block.vectors)
        for k, (line, word) in enumerate(zip(block.lines, block.words, strict=True)):
            word_id = lexicon.id(word)
            if word_id is None:
                report.n_skipped += 1
            elif present[word_id] or not fits[k]:
                report.refuse(line, word, DUPLICATE if present[word_id] else OVERFLOW)
            else:
                matrix.write(word_id, cast[k])
                present[word_id] = True
    return present


def build_with_vectors(
    path: str | os.PathLike[str], folder: str | os.PathLike[str], *, on_progress: OnProgress | None = None
) -> LoadReport:
    """Build a lexicon from a vector file of any size; `Lexicon.load` and `VectorTable.load` both open the folder.

    The memory does not depend on the width of the vectors: at most 180 bytes per word, 1.6 GB for 8.8M words.

    Args:
        path: word2vec text (plain, .gz, .xz) or binary.
        folder: written completely or not at all; contains vectors.npy, float16[V, width], and the files of a lexicon.
        on_progress: called regularly with (bytes of the file read, bytes of the file).

    Returns:
        The number of words taken, and the refused lines with their reasons: strings that cannot be words (single
        characters, spaces, ...), repeated words, wrong widths, and numbers that are not finite or too large for
        float16.

    Raises:
        LexiconError: the file cannot be read, is truncated or contains no word, or the folder cannot be written.
    """
    source = open_vectors(path)
    report = ReportBuilder(source=str(path), format=source.format)
    with new_folder(folder, kind=LEXICON) as (aside, facts):
        blocks = map(_with_visible_words, source.blocks(report, on_progress))
        words = write_rows(blocks, aside, width=source.width, dtype=DTYPE, report=report, reason=reason_to_refuse)
        done = report.build(n_taken=len(words))
        if not done.n_taken:
            raise LexiconError(f"no usable word; expected words of two or more characters\n{done}")
        facts.update(
            BaseWords.build(words, None).save(aside, has_words=True),
            vectors={"width": source.width, "dtype": DTYPE, "source_format": source.format},
        )
        UserChanges().save(aside)
    return done


def _with_visible_words(block: VectorBlock) -> VectorBlock:
    """The same rows, with words as lexicons find them: without invisible characters."""
    return replace(block, words=list(map(without_invisible, block.words)))


class RowFile:
    """An .npy matrix that is written row by row, without mapping it, since a full disk would then kill the process."""

    def __init__(self, path: Path, *, width: int, dtype: str) -> None:
        self._dtype = np.dtype(dtype).newbyteorder("<")
        self._width = width
        self._n_rows = 0
        self._file = open(path, "wb")  # noqa: SIM115  # closed in __exit__
        self._start = self._write_header()
        self._next = 0  # the row at the current position of the file

    def __enter__(self) -> RowFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._file as file:
            if error is None:
                file.flush()
                file.truncate(self._start + self._n_rows * self._width * self._dtype.itemsize)
                file.seek(0)
                if self._write_header() != self._start:
                    raise LexiconError(f"{file.name}: {self._n_rows:,} rows do not fit in an .npy header")

    def cast(self, vectors: np.ndarray) -> tuple[np.ndarray, list[bool]]:
        """Convert vectors[n, width] to the type of the matrix; also returns whether each vector fits into that type."""
        with np.errstate(over="ignore"):
            cast = vectors.astype(self._dtype)
        return cast, np.isfinite(cast).all(axis=1).tolist()

    def write(self, row: int, vectors: np.ndarray) -> None:
        """Write one vector at `row`, or several from `row` on; they must come from `cast`."""
        if row != self._next:
            self._file.seek(self._start + row * self._width * self._dtype.itemsize)
        self._file.write(vectors.tobytes())
        self._next = row + vectors.size // self._width
        self.extend(self._next)

    def extend(self, n_rows: int) -> None:
        """Extend the matrix to at least `n_rows` rows; rows that are not written contain zeros."""
        self._n_rows = max(self._n_rows, n_rows)

    def _write_header(self) -> int:
        # NumPy reserves space for a larger number of rows, so the final header is as long as the first one.
        header = {"descr": self._dtype.str, "fortran_order": False, "shape": (self._n_rows, self._width)}
        np.lib.format.write_array_header_1_0(self._file, header)
        return self._file.tell()


def write_rows(
    blocks: Iterable[VectorBlock],
    folder: Path,
    *,
    width: int,
    dtype: str,
    report: ReportBuilder,
    reason: Callable[[str], str | None] = lambda word: None,
) -> WordBlob:
    """Write vectors.npy and the words in one pass, in file order; this needs 80 bytes of memory per word.

    Args:
        reason: returns why a word cannot be taken, or None. `report` lists these words, repeated words, and words whose
            numbers are too large for `dtype`.

    Returns:
        The words, mapped from `folder`.
    """
    # Hashes need a fifth of the memory of words; a collision among 8.8M words occurs once in 500,000 builds.
    seen: set[int] = set()
    with (
        RowFile(folder / VECTORS_FILE, width=width, dtype=dtype) as matrix,
        open(folder / WORDS_FILE, "wb") as words,
    ):
        for block in blocks:
            cast, fits = matrix.cast(block.vectors)
            taken = []
            for k, (line, word) in enumerate(zip(block.lines, block.words, strict=True)):
                key = hash(word)
                problem = reason(word) or (DUPLICATE if key in seen else None if fits[k] else OVERFLOW)
                if problem is not None:
                    report.refuse(line, word, problem)
                else:
                    seen.add(key)
                    taken.append(k)
            first = len(seen) - len(taken)
            matrix.write(first, cast if len(taken) == len(cast) else cast[taken])
            words.write("".join(f"{block.words[k]}\n" for k in taken).encode())
    return finish_blob(folder)
