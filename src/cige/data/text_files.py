"""Text files of data: errors contain line numbers, and a failed write leaves the old file unchanged."""

from __future__ import annotations

import gzip
import io
import lzma
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cige.errors import DataError
from cige.folders.atomic import atomic_file
from cige.folders.packed import UNPACKING_ERRORS, is_pipe, unpack
from cige.text.encodings import how_to_convert
from cige.text.visible import one_line

_SURROGATE = re.compile("[\ud800-\udfff]")


def read_text(path: str | Path, *, again: bool = False) -> str:
    """The content of a UTF-8 file (plain, .gz or .xz) without its byte order mark and with its own line ends. Raises a
    DataError if the file is missing, is a folder, cannot be decompressed, or is not UTF-8 (with the line number); or it
    is a pipe and `again` is true.

    Args:
        again: whether the caller reads the file again, as after the detection of its format, which a pipe does not
            allow: it would be empty.
    """
    if again and is_pipe(path):
        raise DataError(f"{path}: a pipe or device; expected a file, so save its content to a file first")
    return decode(read_bytes(Path(path)), name=str(path))


def decode(raw: bytes, *, name: str) -> str:
    """Decode UTF-8 bytes, or raise a DataError with `name` and the number of the first bad line."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        text_start = 3 if raw.startswith(b"\xef\xbb\xbf") else 0  # the codec does not count the mark
        position = text_start + error.start
        line = raw.count(b"\n", 0, position) + 1
        raise DataError(
            f"{name}, line {line}: byte 0x{raw[position]:02x} is not UTF-8; "
            + how_to_convert(raw[:16] + raw[position : position + 200])
        ) from None


@contextmanager
def error_context(place: str) -> Iterator[None]:
    """Context manager that prepends a place, such as a file and its line, to the message of a DataError."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{place}: {one_line(str(error))}") from None


def write_text(path: str | Path, text: str) -> None:
    """Write `text` as UTF-8, completely or not at all; it is compressed if the name ends in .gz or .xz. Raises a
    DataError if the text cannot be encoded, or the file cannot be written; an old file is unchanged then."""
    try:
        raw = text.encode("utf-8")
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        code = ord(text[error.start])
        raise DataError(
            f"{path}, line {line}: U+{code:04X} is a lone surrogate, which UTF-8 cannot encode; "
            "write format jsonl, which escapes it"
        ) from None
    suffix = Path(path).suffix
    if suffix == ".gz":
        raw = gzip.compress(raw, mtime=0)  # without a time stamp, so that the same text gives the same bytes
    elif suffix == ".xz":
        raw = lzma.compress(raw)
    write_bytes(path, raw)


def write_bytes(path: str | Path, raw: bytes) -> None:
    """Write a file completely or not at all; raises a DataError on failure, and an old file is unchanged then."""
    try:
        with atomic_file(path) as aside:
            aside.write_bytes(raw)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}; nothing was changed there") from error


def has_surrogate(text: str) -> bool:
    """Whether a text contains a lone surrogate, which cannot be encoded in UTF-8."""
    return _SURROGATE.search(text) is not None


def read_bytes(path: Path) -> bytes:
    """The content of a file, unpacked if it is .gz or .xz; raises a DataError if it cannot be read or unpacked."""
    try:
        return unpack(io.BytesIO(path.read_bytes())).read()  # in memory, because a pipe cannot be rewound
    except FileNotFoundError:
        raise DataError(f"no file at {path}; check the name, or see `cige data fetch` for public data sets") from None
    except IsADirectoryError:
        raise DataError(f"{path} is a folder; expected a file of labelled sentences") from None
    except UNPACKING_ERRORS as error:
        raise DataError(f"{path} is damaged or truncated ({error}); fetch or compress it again") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
