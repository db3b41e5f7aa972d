"""Compressed files, which are detected by their first bytes rather than by their names, and pipes."""

from __future__ import annotations

import gzip
import lzma
import os
import zlib
from typing import IO, cast

UNPACKING_ERRORS = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error)  # raised for damaged or truncated files
_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"  # first bytes of compressed files, with which no UTF-8 text begins


def is_pipe(path: str | os.PathLike[str]) -> bool:
    """Whether there is a pipe or a device at this path, whose content can be read only once."""
    return os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))


def unpack(file: IO[bytes]) -> IO[bytes]:
    """The decompressed content of a .gz or .xz file, detected by its first bytes; other files are returned unchanged.

    `file` must be seekable and at its beginning. Reading the result may raise UNPACKING_ERRORS.
    """
    head = file.read(len(_XZ))
    file.seek(0)
    if head.startswith(_GZIP):
        return cast(IO[bytes], gzip.GzipFile(fileobj=file))
    return cast(IO[bytes], lzma.LZMAFile(file)) if head == _XZ else file
