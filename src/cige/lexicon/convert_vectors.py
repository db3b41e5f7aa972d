"""Word2vec files of any size -> a folder whose matrix is mapped, aligned with a lexicon if one is given."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import numpy as np

from cige.errors import LexiconError
from cige.lexicon.hash_index import HashIndex, word_hash
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.report import LoadReport, ReportBuilder
from cige.lexicon.storage import new_folder
from cige.lexicon.text_file import ZIP_MAGIC, read_magic
from cige.lexicon.vector_files import VectorRow, open_vectors
from cige.lexicon.vectors import KIND, PRESENT_FILE, VECTORS_FILE, VectorTable
from cige.lexicon.word_blob import WORDS_FILE, WordBlob, finish_blob
from cige.lexicon.word_rules import DUPLICATE

DTYPES = ("float16", "float32")
OVERFLOW = "number too large for float16"


def convert_vectors(
    path: str | os.PathLike[str],
    out_folder: str | os.PathLike[str],
    *,
    lexicon: Lexicon | None = None,
    dtype: str = "float16",
) -> LoadReport:
    """Stream vectors into a folder that `VectorTable.load` maps.

    Memory does not grow with the matrix: about 100 bytes a word without a lexicon, one byte a lexicon word with one.

    Args:
        path: word2vec text (plain, .gz, .xz) or binary; an .npz or a folder of this package too.
        out_folder: appears whole or not at all.
        lexicon: align with it: row i is the vector of base word i, zeros where there is none (present.npy tells).
        dtype: "float16" or "float32".

    Returns:
        n_taken vectors; lines refused and why; with a lexicon, vectors skipped because no base word asks for them and
        base words that got none (n_missing).

    Raises:
        LexiconError: the file cannot be read, or the folder not be written.
    """
    if dtype not in DTYPES:
        raise LexiconError(f"dtype {dtype!r}: expected one of {', '.join(DTYPES)}")
    format, width, report, rows = _open(path)
    with new_folder(out_folder, kind=KIND) as (aside, facts):
        with RowFile(aside / VECTORS_FILE, width=width, dtype=dtype) as matrix:
            if lexicon is None:
                words = _write_all(rows, matrix, aside, report)
                n_taken = len(words)
            else:
                words = lexicon.words
                words.save(aside)
                n_taken = _write_aligned(rows, matrix, aside, report, lexicon)
        done = report.build(n_taken=n_taken)
        if done.n_refused and not done.n_taken and not done.n_skipped:
            raise LexiconError(f"no vector to use\n{done}")
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


class RowFile:
    """An .npy matrix written row by row, through plain writes: a mapped file on a full disk kills the process."""

    def __init__(self, path: Path, *, width: int, dtype: str) -> None:
        self._dtype = np.dtype(dtype).newbyteorder("<")
        self._width = width
        self._n_rows = 0
        self._file = open(path, "wb")  # noqa: SIM115  # closed in __exit__
        self._start = self._write_header()
        self._next = 0  # the row that the file stands at

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

    def write(self, row: int, vector: np.ndarray) -> bool:
        """Put a vector at `row`; False when it holds a number that the type cannot."""
        with np.errstate(over="ignore"):
            cast = vector.astype(self._dtype)
        if not np.isfinite(cast).all():
            return False
        if row != self._next:
            self._file.seek(self._start + row * cast.nbytes)
        self._file.write(cast.tobytes())
        self._next = row + 1
        self.extend(row + 1)
        return True

    def extend(self, n_rows: int) -> None:
        """Make the matrix at least `n_rows` long; rows never written are zeros."""
        self._n_rows = max(self._n_rows, n_rows)

    def _write_header(self) -> int:
        # NumPy leaves room for the number of rows to grow, so a header rewritten in the end is as long as the first.
        header = {"descr": self._dtype.str, "fortran_order": False, "shape": (self._n_rows, self._width)}
        np.lib.format.write_array_header_1_0(self._file, header)
        return self._file.tell()


def _open(path: str | os.PathLike[str]) -> tuple[str, int, ReportBuilder, Iterator[VectorRow]]:
    if Path(path).is_dir() or read_magic(path).startswith(ZIP_MAGIC):
        table = VectorTable.load(path)
        format = "folder" if Path(path).is_dir() else "npz"
        return format, table.width, ReportBuilder(source=str(path), format=format), _table_rows(table)
    source = open_vectors(path)
    report = ReportBuilder(source=str(path), format=source.format)
    return source.format, source.width, report, source.rows(report)


def _table_rows(table: VectorTable) -> Iterator[VectorRow]:
    for row, word in enumerate(table.words):
        if table.present is None or table.present[row]:
            yield row + 1, word, table.vectors[row]


def _write_all(rows: Iterator[VectorRow], matrix: RowFile, aside: Path, report: ReportBuilder) -> WordBlob:
    seen: set[int] = set()  # hashes, not words: a fifth of the memory
    with open(aside / WORDS_FILE, "wb") as file:
        for line, word, vector in rows:
            key = word_hash(word)
            if key in seen:
                report.refuse(line, word, DUPLICATE)
            elif matrix.write(len(seen), vector):
                seen.add(key)
                file.write(f"{word}\n".encode())
            else:
                report.refuse(line, word, OVERFLOW)
    return finish_blob(aside)


def _write_aligned(
    rows: Iterator[VectorRow], matrix: RowFile, aside: Path, report: ReportBuilder, lexicon: Lexicon
) -> int:
    present = np.zeros(len(lexicon), dtype=bool)
    matrix.extend(len(lexicon))
    for line, word, vector in rows:
        word_id = lexicon.id(word)
        if word_id is None:
            report.n_skipped += 1
        elif present[word_id]:
            report.refuse(line, word, DUPLICATE)
        elif matrix.write(word_id, vector):
            present[word_id] = True
        else:
            report.refuse(line, word, OVERFLOW)
    np.save(aside / PRESENT_FILE, present)
    n_taken = int(present.sum())
    report.n_missing = len(present) - n_taken
    return n_taken
