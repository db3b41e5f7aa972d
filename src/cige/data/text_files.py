"""Text files of data: decoded with line numbers in every complaint, written so that a failure leaves the old file."""

from __future__ import annotations

import gzip
import io
import lzma
import re
from pathlib import Path

from cige.errors import DataError
from cige.folders.atomic import atomic_file
from cige.folders.packed import UNPACKING_ERRORS, unpack

_SURROGATE = re.compile("[\ud800-\udfff]")


def read_text(path: str | Path) -> str:
    """The whole of a UTF-8 file (plain, .gz or .xz) without its byte order mark; line ends stay as they are.

    Raises DataError for a file that is missing, is a folder, cannot be unpacked or is not UTF-8 (naming the line).
    """
    return decode(_read_bytes(Path(path)), name=str(path))


def decode(raw: bytes, *, name: str) -> str:
    """Decode UTF-8 bytes; `name` stands for the file in the DataError that names the first bad line."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{name}, line 1: this file is UTF-16; save it as UTF-8")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        text_start = 3 if raw.startswith(b"\xef\xbb\xbf") else 0  # the codec counts from behind the mark
        position = text_start + error.start
        line = raw.count(b"\n", 0, position) + 1
        raise DataError(
            f"{name}, line {line}: byte 0x{raw[position]:02x} is not UTF-8; "
            "save the file as UTF-8 (for GBK: iconv -f gb18030 -t utf-8)"
        ) from None


def write_text(path: str | Path, text: str) -> None:
    """Write `text` as UTF-8 (packed if the name ends in .gz or .xz), wholly or not at all.

    Raises DataError where the text cannot be encoded or the file cannot be written; an old file is then unchanged.
    """
    try:
        raw = text.encode("utf-8")
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        code = ord(text[error.start])
        raise DataError(
            f"{path}, line {line}: U+{code:04X} is a lone surrogate, which no UTF-8 file can hold; "
            "write format jsonl, which escapes it"
        ) from None
    suffix = Path(path).suffix
    if suffix == ".gz":
        raw = gzip.compress(raw, mtime=0)  # the same bytes for the same text
    elif suffix == ".xz":
        raw = lzma.compress(raw)
    write_bytes(path, raw)


def write_bytes(path: str | Path, raw: bytes) -> None:
    """Write a file wholly or not at all; raises DataError where that fails, with an old file unchanged."""
    try:
        with atomic_file(path) as aside:
            aside.write_bytes(raw)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}; nothing was changed there") from error


def has_surrogate(text: str) -> bool:
    """Whether a text holds a lone surrogate, which UTF-8 cannot encode."""
    return _SURROGATE.search(text) is not None


def _read_bytes(path: Path) -> bytes:
    try:
        return unpack(io.BytesIO(path.read_bytes())).read()  # a pipe is read too, and cannot be sought
    except FileNotFoundError:
        raise DataError(f"no file at {path}; check the name, or see `cige data fetch` for public data sets") from None
    except IsADirectoryError:
        raise DataError(f"{path} is a folder; expected a file of labelled sentences") from None
    except UNPACKING_ERRORS as error:
        raise DataError(f"{path} is damaged or cut short ({error}); fetch or pack it again") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
