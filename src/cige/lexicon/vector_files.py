"""Reading word2vec files, text or binary, a row at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from cige.errors import LexiconError
from cige.lexicon.report import ReportBuilder
from cige.lexicon.text_file import DAMAGE, damaged, open_bytes, read_lines, shown
from cige.lexicon.word_rules import CONTROL, EMPTY, NOT_UTF8
from cige.lexicon.words_file import N_SAMPLE, NO_VECTOR, is_header, word2vec_width
from cige.text.normalize import normalize

NOT_NUMBERS = "not finite numbers"
_HEAD = 1 << 16
_BLOCK = 1 << 20

VectorRow = tuple[int, str, np.ndarray]


@dataclass(frozen=True)
class VectorFile:
    """A word2vec file whose form is known.

    Attributes:
        path: the file, plain, .gz or .xz.
        format: "word2vec" (text) or "binary".
        width: numbers a vector.
        n_promised: number of vectors that its header states, None without a header.
    """

    path: Path
    format: str
    width: int
    n_promised: int | None

    def rows(self, report: ReportBuilder) -> Iterator[VectorRow]:
        """Yield (line, word, float32[width]); the word is normalised, the line of a binary file is a row number.

        Rows that cannot be used are refused in `report`; words may come twice.

        Raises:
            LexiconError: the file is damaged, or ends before the last vector that its header promises.
        """
        n_rows = 0
        for line, raw, vector in self._raw_rows():
            n_rows += 1
            try:
                word = normalize(raw.decode("utf-8"))
            except UnicodeDecodeError:
                report.refuse(line, shown(raw), NOT_UTF8)
                continue
            problem = vector if isinstance(vector, str) else _problem(word, vector)
            if problem is not None:
                report.refuse(line, word, problem)
            else:
                yield line, word, vector  # type: ignore[misc]  # a str was refused above
        if self.n_promised is not None and n_rows < self.n_promised:
            raise LexiconError(
                f"{self.path}: its header promises {self.n_promised:,} vectors, it holds {n_rows:,}; "
                "cut short, get the file again"
            )

    def _raw_rows(self) -> Iterator[tuple[int, bytes, np.ndarray | str]]:
        if self.format == "binary":
            yield from _binary_rows(self.path, width=self.width, n_rows=self.n_promised or 0)
        else:
            yield from _text_rows(self.path, width=self.width, skip=self.n_promised is not None)


def open_vectors(path: str | os.PathLike[str]) -> VectorFile:
    """Find out the form of a word2vec file.

    Raises:
        LexiconError: it is missing, damaged or not a word2vec file.
    """
    path = Path(path)
    try:
        with open_bytes(path) as file:
            head = file.read(_HEAD)
    except DAMAGE as error:
        raise damaged(str(path), error) from error
    first, _, rest = head.partition(b"\n")
    fields = first.split()
    numbers = len(fields) == 2 and all(field.isdigit() for field in fields)
    # Text holds no byte below a tab; float32 numbers do, within a row or two.
    if numbers and (".bin" in path.suffixes or any(byte < 9 for byte in rest)):
        return VectorFile(path, "binary", width=int(fields[1]), n_promised=int(fields[0]))
    sample = [raw for _, raw in islice(read_lines(path), N_SAMPLE)]
    width, header = word2vec_width(sample), is_header(sample)
    if not width:
        raise LexiconError(f"{path}: not word2vec text or binary; expected lines of a word and its numbers")
    return VectorFile(path, "word2vec", width=width, n_promised=header[0] if header else None)


def _problem(word: str, vector: np.ndarray) -> str | None:
    if not word:
        return EMPTY
    if "\n" in word:
        return CONTROL
    return None if np.isfinite(vector).all() else NOT_NUMBERS


def _text_rows(path: Path, *, width: int, skip: bool) -> Iterator[tuple[int, bytes, np.ndarray | str]]:
    for line, raw in islice(read_lines(path), int(skip), None):
        # From the right, at blanks only: a word may hold other white space, or be a blank itself.
        fields = raw.rstrip().replace(b"\t", b" ").rsplit(b" ", width)
        if len(fields) != width + 1:
            yield line, fields[0], NO_VECTOR
            continue
        try:
            yield line, fields[0], np.fromiter(map(float, fields[1:]), dtype=np.float32, count=width)
        except ValueError:
            yield line, fields[0], NOT_NUMBERS


def _binary_rows(path: Path, *, width: int, n_rows: int) -> Iterator[tuple[int, bytes, np.ndarray]]:
    n_bytes = 4 * width
    row = 0
    try:
        with open_bytes(path) as file:
            file.readline()
            buffer, at = b"", 0
            while row < n_rows:
                begin = at + (buffer[at : at + 1] == b"\n")  # some writers end a row with a newline, some do not
                end = buffer.find(b" ", begin + 1)  # a word has at least one byte, which may be a blank
                if end < 0 or len(buffer) < end + 1 + n_bytes:
                    block = file.read(max(_BLOCK, n_bytes))
                    if not block:
                        return
                    buffer, at = buffer[at:] + block, 0
                    continue
                row += 1
                yield row, buffer[begin:end], np.frombuffer(buffer, dtype="<f4", count=width, offset=end + 1)
                at = end + 1 + n_bytes
    except DAMAGE as error:
        raise damaged(f"{path}, after vector {row}", error) from error
