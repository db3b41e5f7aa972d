"""Lines of a text file that may be compressed, with errors that name the line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import IO

from cige.errors import LexiconError
from cige.folders.packed import UNPACKING_ERRORS, unpack

ZIP_MAGIC = b"PK\x03\x04"
UTF8_BOM = b"\xef\xbb\xbf"
UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
DAMAGE = (OSError, *UNPACKING_ERRORS)  # what reading a bad file may raise


def open_file(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file as it is on disk; `cige.folders.packed.unpack` reads what a packed one holds.

    Raises:
        LexiconError: the file is missing, is a folder or a pipe, or may not be read.
    """
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        # Formats are told apart by a first look, and what a pipe has given once it does not give again.
        raise LexiconError(f"{path}: a pipe or device; expected a file, so save its contents to one first")
    try:
        return open(path, "rb")
    except OSError as error:
        raise LexiconError(f"{path}: cannot be read ({error.strerror or error}); give the path of a file") from error


def is_zip(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as .zip and .npz files do; raises as `open_file`."""
    with open_file(path) as file:
        return file.read(len(ZIP_MAGIC)) == ZIP_MAGIC


def read_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, bytes]]:
    """Yield (line number from 1, line without its end); the byte order mark of UTF-8 is dropped.

    Raises:
        LexiconError: the file cannot be read, its compression is damaged or cut short, or it is UTF-16.
    """
    line = 0
    try:
        with open_file(path) as file, unpack(file) as content:
            for line, raw in enumerate(content, start=1):
                if line == 1:
                    if raw.startswith(UTF16_BOMS):
                        raise LexiconError(f"{path}, line 1: UTF-16; convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)")
                    raw = raw.removeprefix(UTF8_BOM)
                yield line, raw.rstrip(b"\r\n")
    except DAMAGE as error:
        raise damaged(f"{path}, after line {line}", error) from error


def damaged(place: str, error: Exception) -> LexiconError:
    return LexiconError(f"{place}: damaged or cut short ({error}); get the file again")


def shown(raw: bytes) -> str:
    """Bytes that are not UTF-8, as a message can print them."""
    return raw.decode("utf-8", "backslashreplace")
