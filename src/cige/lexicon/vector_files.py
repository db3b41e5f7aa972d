"""Read word2vec files, text or binary, in blocks of rows; lines are parsed in C if cige was built with a compiler."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, cast

import numpy as np

from cige.errors import LexiconError
from cige.folders.packed import unpack
from cige.lexicon.delimited import whole_number
from cige.lexicon.report import ReportBuilder
from cige.lexicon.text_file import DAMAGE, UTF8_BOM, damaged, open_file, read_lines, shown
from cige.lexicon.word_rules import CONTROL, EMPTY, NOT_UTF8
from cige.text.normalize import normalize

N_SAMPLE = 200  # lines from which a format is recognised
NO_VECTOR = "wrong number of columns for a vector"
NOT_NUMBERS = "not finite numbers"
Rows = tuple[list[bytes], dict[int, str]]  # the word of every line; the problem of each line that has one, by row
_HEAD = 1 << 16
_BLOCK = 1 << 22  # bytes read at once
_MAX_LINE = 1 << 26
OnProgress = Callable[[int, int], None]  # (bytes of the file read, bytes of the file)


def cells_of_row(line: bytes, width: int) -> list[bytes]:
    """The word of a line and its `width` numbers; fewer cells if it has fewer."""
    # Split from the right, and only at spaces: a word may contain other white space, or be a space itself.
    return line.rstrip().replace(b"\t", b" ").rsplit(b" ", width)


def python_row(line: bytes, numbers: np.ndarray) -> tuple[bytes, str | None]:
    """Parse one line into `numbers` (float32[width]); returns the word, and the problem of the line or None.

    Lines that the C code does not parse are parsed by this function, and its results must be the same.
    """
    fields = cells_of_row(line, len(numbers))
    if len(fields) != len(numbers) + 1:
        return fields[0], NO_VECTOR
    try:
        with np.errstate(over="ignore"):  # a number that is too large becomes infinite, which the caller refuses
            numbers[:] = list(map(float, fields[1:]))
    except ValueError:
        return fields[0], NOT_NUMBERS
    return fields[0], None


def python_rows(block: bytes, numbers: np.ndarray) -> Rows:
    """Parse n lines, each of which ends with a newline, into float32[n, width]."""
    parsed = [python_row(line, row) for line, row in zip(block.split(b"\n"), numbers, strict=False)]
    return [word for word, _ in parsed], {k: problem for k, (_, problem) in enumerate(parsed) if problem is not None}


def native_rows(block: bytes, numbers: np.ndarray) -> Rows:
    """Like `python_rows`, but twenty times as fast."""
    n_rows, width = numbers.shape
    spans = np.empty((n_rows, 3), dtype=np.int64)
    _parse_rows(block, width, n_rows, numbers.ctypes.data, spans.ctypes.data)
    begins, word_ends, ends = spans.T
    words = [block[begin:end] for begin, end in zip(begins.tolist(), word_ends.tolist(), strict=True)]
    problems = {}
    for row in np.flatnonzero(word_ends < 0).tolist():
        words[row], problem = python_row(block[begins[row] : ends[row]], numbers[row])
        if problem is not None:
            problems[row] = problem
    return words, problems


try:
    from cige.lexicon._parse import parse_rows as _parse_rows  # type: ignore[import-not-found,unused-ignore]

    parse_rows = native_rows
except ImportError:  # built without a compiler
    parse_rows = python_rows


@dataclass(frozen=True)
class VectorBlock:
    """Some rows of a vector file, in file order.

    Attributes:
        lines: n line numbers from 1; row numbers of a binary file.
        words: n words, normalised.
        vectors: float32[n, width], finite.
    """

    lines: list[int]
    words: list[str]
    vectors: np.ndarray


@dataclass(frozen=True)
class _RawBlock:
    """Rows of the file: the number of the first, their words, the problems of rows by index, and float32[n, width]."""

    first: int
    words: list[bytes]
    problems: dict[int, str]
    vectors: np.ndarray


@dataclass(frozen=True)
class VectorFile:
    """A word2vec file whose format is known.

    Attributes:
        path: the file, plain, .gz or .xz.
        format: "word2vec" (text) or "binary".
        width: numbers per vector.
        n_promised: number of vectors according to its header, or None if it has no header.
    """

    path: Path
    format: str
    width: int
    n_promised: int | None

    def blocks(self, report: ReportBuilder, on_progress: OnProgress | None = None) -> Iterator[VectorBlock]:
        """Yield the valid rows; `report` lists the others. Words may occur twice. Raises a LexiconError if the file is
        damaged, or has fewer vectors than its header states.

        Args:
            on_progress: called after every block with (bytes of the file read, bytes of the file).
        """
        n_rows = 0
        size = self.path.stat().st_size
        try:
            with open_file(self.path) as file, unpack(file) as content:
                read = self._binary_blocks if self.format == "binary" else self._text_blocks
                for block in read(content):
                    n_rows += len(block.words)
                    yield _sound_rows(block, report)
                    if on_progress is not None:
                        on_progress(file.tell(), size)
        except DAMAGE as error:
            raise damaged(f"{self.path}, after vector {n_rows:,}", error) from error
        if self.n_promised is not None and n_rows < self.n_promised:
            raise LexiconError(
                f"{self.path}: its header states {self.n_promised:,} vectors, but it has {n_rows:,}; "
                "the file is truncated, get it again"
            )

    def _text_blocks(self, content: IO[bytes]) -> Iterator[_RawBlock]:
        line = 1
        if self.n_promised is not None:
            content.readline()
            line = 2
        rest = b""
        while block := content.read(_BLOCK):
            if line == 1:
                block = block.removeprefix(UTF8_BOM)
            whole, newline, tail = block.rpartition(b"\n")
            if not newline:
                rest += block
                if len(rest) > _MAX_LINE:
                    raise LexiconError(f"{self.path}, line {line}: longer than {_MAX_LINE:,} bytes; not a vector file")
                continue
            rows = self._parsed(rest + whole + newline, line)
            yield rows
            line += len(rows.words)
            rest = tail
        if rest:
            yield self._parsed(rest + b"\n", line)

    def _parsed(self, block: bytes, line: int) -> _RawBlock:
        numbers = np.empty((block.count(b"\n"), self.width), dtype=np.float32)
        words, problems = parse_rows(block, numbers)
        return _RawBlock(line, words, problems, numbers)

    def _binary_blocks(self, content: IO[bytes]) -> Iterator[_RawBlock]:
        n_bytes = 4 * self.width
        n_rows = self.n_promised or 0
        content.readline()
        row = 0
        rest = b""
        while row < n_rows and (block := content.read(max(_BLOCK, n_bytes))):
            rest += block
            words, numbers = [], []
            at = 0
            while row < n_rows:
                begin = at + (rest[at : at + 1] == b"\n")  # some programs end rows with a newline, others do not
                end = rest.find(b" ", begin + 1)  # a word has at least one byte, which may be a space
                if end < 0 or len(rest) < end + 1 + n_bytes:
                    break
                row += 1
                at = end + 1 + n_bytes
                words.append(rest[begin:end])
                numbers.append(rest[end + 1 : at])
            rest = rest[at:]
            vectors = np.frombuffer(b"".join(numbers), dtype="<f4").reshape(-1, self.width)
            yield _RawBlock(row - len(words) + 1, words, {}, vectors)


def open_vectors(path: str | os.PathLike[str]) -> VectorFile:
    """Detect the format of a word2vec file. Raises a LexiconError if it is missing, damaged or not a word2vec file."""
    path = Path(path)
    try:
        with open_file(path) as file, unpack(file) as content:
            head = content.read(_HEAD)
    except DAMAGE as error:
        raise damaged(str(path), error) from error
    first, _, rest = head.partition(b"\n")
    numbers = _two_numbers(first)
    # Text contains no byte below that of a tab; float32 numbers contain one within the first rows.
    if numbers and (".bin" in path.suffixes or any(byte < 9 for byte in rest)):
        if not numbers[1]:
            raise LexiconError(
                f"{path}: its header states vectors of 0 numbers, expected 1 or more; get the file again"
            )
        return VectorFile(path, "binary", width=numbers[1], n_promised=numbers[0])
    sample = [raw for _, raw in islice(read_lines(path), N_SAMPLE)]
    width, header = word2vec_width(sample), is_header(sample)
    if not width or (not rest and b"\r" in first.strip()):  # the rows of vectors end with \n, not with \r alone
        raise LexiconError(f"{path}: not word2vec text or binary; expected lines of a word and its numbers")
    return VectorFile(path, "word2vec", width=width, n_promised=header[0] if header else None)


def word2vec_width(sample: list[bytes]) -> int | None:
    """Width of the vectors in the first lines of word2vec text, or None if it is not word2vec text.

    Without a header, lines must have at least three numbers, since fewer may be counts.
    """
    header = is_header(sample)
    if header:
        return header[1]
    widths = [len(raw.split()) - 1 for raw in sample if raw.strip()]
    if not widths:
        return None
    width = max(set(widths), key=widths.count)
    fits = sum(_are_numbers(raw.split()[1:]) for raw, n in zip(sample, widths, strict=False) if n == width)
    return width if width >= 3 and 2 * fits > len(sample) else None


def is_header(sample: list[bytes]) -> tuple[int, int] | None:
    """(number of vectors, width) if the first line is a word2vec header that matches the second line, else None."""
    header = _two_numbers(sample[0]) if sample else None
    if header is None:
        return None
    n_rows, width = header
    if len(sample) == 1:
        return header if n_rows == 0 else None
    numbers = sample[1].split()[-width:]
    return header if 1 < width == len(numbers) and _are_numbers(numbers) else None


def _two_numbers(line: bytes) -> tuple[int, int] | None:
    """The whole numbers in a line of exactly two."""
    fields = line.split()
    numbers = [number for field in fields if (number := whole_number(field)) is not None]
    return (numbers[0], numbers[1]) if len(numbers) == len(fields) == 2 else None


def _are_numbers(fields: list[bytes]) -> bool:
    try:
        list(map(float, fields))
    except ValueError:
        return False
    return True


def _sound_rows(block: _RawBlock, report: ReportBuilder) -> VectorBlock:
    words = _decoded(block.words)
    is_finite = np.isfinite(block.vectors).all(axis=1).tolist()
    rows_kept = []
    for k, (word, finite) in enumerate(zip(words, is_finite, strict=True)):
        if word and finite and k not in block.problems and "\n" not in word:
            rows_kept.append(k)
        elif word is None:
            report.refuse(block.first + k, shown(block.words[k]), NOT_UTF8)
        else:
            problem = block.problems.get(k) or (EMPTY if not word else CONTROL if "\n" in word else NOT_NUMBERS)
            report.refuse(block.first + k, word, problem)
    sound = cast(list[str], [words[k] for k in rows_kept])
    vectors = block.vectors if len(sound) == len(words) else block.vectors[rows_kept]
    return VectorBlock([block.first + k for k in rows_kept], sound, vectors)


def _decoded(words: list[bytes]) -> list[str | None]:
    """Each word normalised, or None if it is not UTF-8. Usually all words are decoded at once, which is fast."""
    try:
        together: list[str | None] = [*normalize(b"\n".join(words).decode("utf-8")).split("\n")]
        if len(together) == len(words):
            return together
    except UnicodeDecodeError:
        pass
    return [_decode(word) for word in words]


def _decode(word: bytes) -> str | None:
    try:
        return normalize(word.decode("utf-8"))
    except UnicodeDecodeError:
        return None
