"""Compressed files, recognised by their first bytes rather than by their names."""

from __future__ import annotations

import gzip
import lzma
import zlib
from typing import IO, cast

UNPACKING_ERRORS = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error)  # of a file that is damaged or cut short
_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"  # how packed files begin, and no UTF-8 text does


def unpack(file: IO[bytes]) -> IO[bytes]:
    """What a .gz or .xz file holds, told by its first bytes; `file` itself when it is neither.

    `file` can be sought and stands at its beginning. Reading the result may raise UNPACKING_ERRORS.
    """
    head = file.read(len(_XZ))
    file.seek(0)
    if head.startswith(_GZIP):
        return cast(IO[bytes], gzip.GzipFile(fileobj=file))
    return cast(IO[bytes], lzma.LZMAFile(file)) if head == _XZ else file
