"""Lines of a text file that may be compressed, with errors that name the line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import IO

from cige.errors import LexiconError
from cige.folders.packed import UNPACKING_ERRORS, unpack
from cige.lexicon.word_rules import NOT_UTF8
from cige.text.encodings import UTF16_MARKS, how_to_convert, is_no_text

ZIP_MAGIC = b"PK\x03\x04"
UTF8_BOM = b"\xef\xbb\xbf"
DAMAGE = (OSError, *UNPACKING_ERRORS)  # exceptions that reading a damaged file may raise


def open_file(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file without decompressing it; see `cige.folders.packed.unpack`.

    Raises:
        LexiconError: the file is missing, is a folder or a pipe, or cannot be read.
    """
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
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
    """Yield (line number from 1, line without its end); the byte order mark of UTF-8 is dropped.

    Raises:
        LexiconError: the file cannot be read, it is compressed and damaged or truncated, or it is UTF-16 or no text.
    """
    line = 0
    try:
        with open_file(path) as file, unpack(file) as content:
            for line, raw in enumerate(content, start=1):
                if line == 1:
                    if raw.startswith(UTF16_MARKS) or is_no_text(raw):
                        raise LexiconError(f"{path}, line 1: {how_to_convert(raw)}")
                    raw = raw.removeprefix(UTF8_BOM)
                yield line, raw.rstrip(b"\r\n")
    except DAMAGE as error:
        raise damaged(f"{path}, after line {line}", error) from error


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
