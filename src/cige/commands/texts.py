"""Input texts: an argument, the lines of a file or of standard input, or the texts of a file of JSON or JSON lines."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from typing import IO

from cige.commands.parser import SOURCE
from cige.errors import DataError
from cige.text.encodings import how_to_convert

_JSON_FORMS = (
    'a file of JSON is read as documents: objects with "text", tasks of Label Studio, what doccano, spaCy or displaCy '
    "write, or rows of tokens and ner_tags; copy it to a .txt file to read its lines as they are"
)
_JSON, _JSON_LINES = (re.compile(rf"\.({names})(\.gz|\.xz)?$", re.IGNORECASE) for names in ("json", "jsonl|ndjson"))
_LIKE_A_FILE_NAME = re.compile(r"[\w./\\~()（）-]+\.(txt|text|md|tsv|csv|jsonl?|ndjson)(\.gz|\.xz)?")


def add_source_argument(parser, what: str) -> None:  # type: ignore[no-untyped-def]
    parser.add_argument(
        "source",
        metavar=SOURCE,
        nargs="?",
        default="-",
        help=f"{what}; the path of an existing file (.json and .jsonl files contain documents), - or nothing for "
        "standard input, or the text itself",
    )


def texts_of(source: str) -> Iterator[str]:
    """The texts of a source, one per line of a file or of standard input, while they are read.

    A file may be compressed (.gz, .xz), or be a pipe such as that of `<(...)` in a shell. The texts of a .json or
    .jsonl file are those of its documents; they may have line breaks. Raises a DataError if a line is not UTF-8, a
    compressed file is damaged, the source looks like the name of a missing file, or no form of `cige.data.documents`
    fits a file of JSON.
    """
    if source == "-":
        yield from _lines(sys.stdin.buffer, "standard input")
    elif not _is_file(source):
        yield _the_text_itself(source)
    elif _JSON.search(source):
        yield from _texts_of_documents(source)
    elif _JSON_LINES.search(source):
        yield from _texts_of_json_lines(source)
    else:
        yield from _lines_of_file(source)


def sentences_of(source: str) -> Iterator[str]:
    """As `texts_of`, with the lines of documents each by itself."""
    for text in texts_of(source):
        yield from text.split("\n")


def whole_text_of(source: str) -> str:
    """A source as one text, including line breaks."""
    if source == "-" or _is_file(source):
        return "\n".join(texts_of(source))
    return _the_text_itself(source)


def _is_file(source: str) -> bool:
    """Whether a source is the path of something that has lines: a file, a pipe or a device."""
    return os.path.exists(source) and not os.path.isdir(source)


def _texts_of_documents(path: str) -> list[str]:
    from cige.data.documents.formats import of_json, read_documents  # only here: lines do not need them
    from cige.data.text_files import read_text

    format = of_json(read_text(path, again=True))
    if format is None:
        raise DataError(f"{path}: {_JSON_FORMS}")
    try:
        return [document.text for document in read_documents(path, format=format)]
    except DataError as error:
        raise DataError(f"{error} (read as {format}; {_JSON_FORMS})") from None


def _texts_of_json_lines(path: str) -> Iterator[str]:
    """Those under "text", while the lines are read; files of other objects are read as a whole."""
    is_first = True
    for number, line in enumerate(_lines_of_file(path), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        text = record.get("text") if isinstance(record, dict) else None
        if not isinstance(text, str):
            if is_first:
                yield from _texts_of_documents(path)
                return
            raise DataError(f'{path}, line {number}: expected an object of JSON with a string under "text"')
        is_first = False
        yield text


def _lines_of_file(path: str) -> Iterator[str]:
    with open(path, "rb") as file:
        yield from _lines(_unpacked(file, path) if file.seekable() else file, path)


def _lines(file: Iterable[bytes], name: str) -> Iterator[str]:
    start = b""
    for number, line in enumerate(file, 1):
        start = start or line[:16]
        line = line.removesuffix(b"\n").removesuffix(b"\r")
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                f"{name}, line {number}: byte 0x{line[error.start]:02x} at column {error.start + 1} is not UTF-8; "
                + how_to_convert(start + line)
            ) from None


def _unpacked(file: IO[bytes], name: str) -> Iterator[bytes]:
    from cige.folders.packed import UNPACKING_ERRORS, unpack  # only here: a text itself does not need them

    try:
        yield from unpack(file)
    except UNPACKING_ERRORS as error:
        raise DataError(f"{name} is damaged or truncated ({error}); fetch or compress it again") from error


def _the_text_itself(source: str) -> str:
    if os.path.isdir(source):
        raise DataError(f"{source} is a folder; expected a text or a file with one text per line")
    if _LIKE_A_FILE_NAME.fullmatch(source):
        raise DataError(f"{source}: no such file (if this is the text itself, pass it on standard input)")
    return source
