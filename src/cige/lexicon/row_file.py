"""RowFile: write a matrix of vectors to disk row by row, and the words of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType

import numpy as np

from cige.errors import LexiconError
from cige.lexicon.report import ReportBuilder
from cige.lexicon.vector_files import VectorBlock
from cige.lexicon.word_blob import WORDS_FILE, WordBlob, finish_blob
from cige.lexicon.word_rules import DUPLICATE

VECTORS_FILE = "vectors.npy"
DTYPES = ("float16", "float32")
OVERFLOW = "number too large for float16"


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
    """Write vectors.npy and the words in one pass, in file order; returns the words, mapped from `folder`. This needs
    80 bytes of memory per word. `report` lists repeated words, words for which `reason` returns why they cannot be
    taken, and words whose numbers are too large for `dtype`."""
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
