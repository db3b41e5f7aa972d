"""Lines of a text file that may be compressed, with errors that name the line."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import IO

from cige.errors import LexiconError
from cige.folders.packed import UNPACKING_ERRORS, is_pipe, unpack
from cige.lexicon.word_rules import NOT_UTF8
from cige.text.encodings import UTF16_MARKS, how_to_convert, is_no_text

ZIP_MAGIC = b"PK\x03\x04"
UTF8_BOM = b"\xef\xbb\xbf"
DAMAGE = (OSError, *UNPACKING_ERRORS)  # exceptions that reading a damaged file may raise
_N_SHOWN = 3
_N_TRIED, _MAX_BAD_SHARE = 1000, 0.01  # a file with a larger share of bad lines is not UTF-8 text


def open_file(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file without decompressing it; see `cige.folders.packed.unpack`. Raises a LexiconError if the file is
    missing, is a folder or a pipe, or cannot be read."""
    if is_pipe(path):
        # The format is detected by reading the beginning, which is not possible twice with a pipe.
        raise LexiconError(f"{path}: a pipe or device; expected a file, so save its content to a file first")
    try:
        return open(path, "rb")
    except OSError as error:
        raise LexiconError(f"{path}: cannot be read ({error.strerror or error}); give the path of a file") from error


def is_zip(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a .zip or .npz file, by its first bytes; raises the errors of `open_file`."""
    with open_file(path) as file:
        return file.read(len(ZIP_MAGIC)) == ZIP_MAGIC


def read_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, bytes]]:
    """Yield (line number from 1, line without its end); the byte order mark of UTF-8 is dropped. Lines end with \\n, or
    with \\r in a file that has no \\n except at its end. Raises a LexiconError if the file cannot be read, it is
    compressed and damaged or truncated, or it is UTF-16 or no text."""
    line = 0
    try:
        with open_file(path) as file, unpack(file) as content:
            for line, raw in enumerate(_raw_lines(content), start=1):
                if line == 1:
                    if raw.startswith(UTF16_MARKS) or is_no_text(raw):
                        raise LexiconError(f"{path}, line 1: {how_to_convert(raw)}")
                    raw = raw.removeprefix(UTF8_BOM)
                yield line, raw.rstrip(b"\r\n")
    except DAMAGE as error:
        raise damaged(f"{path}, after line {line}", error) from error


def _raw_lines(content: IO[bytes]) -> Iterator[bytes]:
    """The lines of a file with their ends, which are all \\r if the file is a single line otherwise."""
    first = content.readline()
    if b"\r" not in first.rstrip(b"\r\n"):
        return chain((first,) if first else (), content)
    second = content.readline()
    if second:
        return chain((first, second), content)
    return iter(first.rstrip(b"\r\n").split(b"\r"))  # as old programs on the Mac, and Excel on request, write it


def read_text_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Like `read_lines`, decoded; raises a LexiconError that names the first line that is not UTF-8."""
    for number, raw in read_lines(path):
        try:
            yield number, raw.decode("utf-8")
        except UnicodeDecodeError:
            raise LexiconError(f"{path}, line {number}: {NOT_UTF8}: {shown(raw[:40])}; {how_to_convert(raw)}") from None


def damaged(place: str, error: Exception) -> LexiconError:
    return LexiconError(f"{place}: damaged or truncated ({error}); get the file again")


def shown(raw: bytes) -> str:
    """Bytes that are not UTF-8 in a printable form."""
    return raw.decode("utf-8", "backslashreplace")


class SoundLines:
    """Iterates over (line number from 1, text) of a UTF-8 file, plain, .gz or .xz.

    Args:
        path: of the file.
        lines: (number from 1, line) of a part of the file that `path` names in messages; None reads the file.

    Attributes:
        n_lines: number of lines read so far.
        n_bad: number of lines left out because they are not UTF-8 or contain a NUL.
        bad_lines: the first of these, in a printable form.

    Raises (while iterating):
        LexiconError: the file cannot be read, or more than 1% of its lines are bad.
    """

    def __init__(self, path: str | os.PathLike[str], lines: Iterable[tuple[int, bytes]] | None = None) -> None:
        self._path, self._lines = path, lines
        self.n_lines = 0
        self.n_bad = 0
        self.bad_lines: list[str] = []

    def __iter__(self) -> Iterator[tuple[int, str]]:
        for number, raw in read_lines(self._path) if self._lines is None else self._lines:
            self.n_lines = number
            text = None
            with suppress(UnicodeDecodeError):
                text = None if b"\0" in raw else raw.decode("utf-8")
            if text is not None:
                yield number, text
                continue
            self.n_bad += 1
            if len(self.bad_lines) < _N_SHOWN:
                self.bad_lines.append(f"line {number}: {shown(raw[:20])}")
            self._check(max(_N_TRIED, number))
        if self.n_bad > 1 or self.n_bad == self.n_lines:
            self._check(self.n_lines)

    def _check(self, n_tried: int) -> None:
        if self.n_bad > n_tried * _MAX_BAD_SHARE:
            raise LexiconError(
                f"{self._path}: {self.n_bad:,} of the first {self.n_lines:,} lines are not UTF-8 text "
                f"({self.bad_lines[0]}); expected text with one sentence per line (for GBK: iconv -f gb18030 -t utf-8)"
            )
