"""Inputs: find the files of a job, and in one pass their checksums and the beginnings of their parts.

A part is a section of one file that is read, annotated and written separately. The parts depend only on the files, not
on the number of processes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from cige.bulk.csv_records import RecordEnds
from cige.data.documents.folders import broken_links, suffix, visible_files
from cige.data.documents.tables import csv_records
from cige.errors import DataError
from cige.folders.manifest import sha256
from cige.folders.packed import UNPACKING_ERRORS, is_pipe, unpack
from cige.text.counted import counted

FORMATS = {".txt": "txt", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "tsv", ".parquet": "parquet"}
PIECE_ROWS = 500  # if no part size is given, parts have a multiple of this many rows
AIM_PARTS = 256  # the maximum number of parts, unless they would have more than LARGEST_ROWS rows
LARGEST_ROWS = 50_000
_BLOCK = 1 << 22
_NEWLINE = 10


@dataclass(frozen=True)
class InputFile:
    """A file of a job.

    Attributes:
        name: path relative to the input of the job, with slashes; empty if the input is a file.
        sha256: checksum of its (decompressed) content.
        n_rows: number of lines, of CSV records without the header, or of rows of a Parquet file.
        begin: the byte offset of the first row, after a byte order mark and the header.
        header: the column names of a CSV or TSV file; empty for other formats.
    """

    name: str
    sha256: str
    n_rows: int
    begin: int = 0
    header: tuple[str, ...] = ()


@dataclass(frozen=True)
class Part:
    """A section of a file.

    Attributes:
        number: its number in the job, from 0.
        file: name of the InputFile.
        start, stop: half-open [start, stop) in bytes of the decompressed file, or in rows of a Parquet file.
        first_row: the number of its first row, from 1.
        n_rows: number of rows, as in InputFile.
    """

    number: int
    file: str
    start: int
    stop: int
    first_row: int
    n_rows: int


def find_files(source: Path, form: str | None) -> tuple[list[str], str]:
    """The names of the input files (`source` itself, or all visible files of the format in a folder), and their format.

    Raises:
        DataError: there are no files, their format is unknown, or they have different formats.
    """
    if not source.exists():
        raise DataError(f"{source}: no such file or folder")
    if is_pipe(source):
        # It is read twice: for its checksum and the beginnings of its parts, and when these are annotated.
        raise DataError(f"{source}: a pipe or device; expected a file or folder, so save its content to a file first")
    known = f"{', '.join(FORMATS)} (or those and .gz, .xz)"
    if not source.is_dir():
        form = form or _format_of(source)
        if form is None:
            raise DataError(f"{source}: expected a name that ends in {known}, or give --format")
        return [""], form
    broken = [link for link in broken_links(source) if (kind := _format_of(link)) and form in (None, kind)]
    if broken:
        raise DataError(f"{broken[0]}: a link to a file that is not there; restore the file, or remove the link")
    formats = {file: kind for file in visible_files(source) if (kind := _format_of(file))}
    kinds = sorted(set(formats.values()))
    if form is None and not kinds:
        raise DataError(f"{source}: no file in it whose name ends in {known}; names that begin with _ or . are ignored")
    if form is None and len(kinds) > 1:
        raise DataError(f"{source}: holds files of formats {', '.join(kinds)}; say which by --format")
    form = form or kinds[0]
    names = [file.relative_to(source).as_posix() for file, kind in formats.items() if kind == form]
    if not names:
        raise DataError(f"{source}: no file of format {form} in it")
    return names, form


def scan(path: Path, name: str, form: str, piece_rows: int) -> tuple[InputFile, list[tuple[int, int]]]:
    """A file, and (end, rows) of each of its pieces, which have `piece_rows` rows except for the last one.

    Raises:
        DataError: it cannot be read, is UTF-16, or lacks a required header.
    """
    try:
        if form == "parquet":
            return _scan_parquet(path, name, piece_rows)
        with open(path, "rb") as packed:
            return _scan_lines(unpack(packed), path, name, form, piece_rows)
    except UNPACKING_ERRORS as reason:
        raise DataError(f"{path} is damaged or cut short ({reason}); fetch or pack it again") from reason


def parts_of(files: list[InputFile], pieces: list[list[tuple[int, int]]], part_rows: int | None) -> Iterator[Part]:
    """The parts of a job, from the pieces of its files; if `part_rows` is None, it depends on the number of rows."""
    n_together = 1
    if part_rows is None:
        total = sum(file.n_rows for file in files)
        n_together = min(max(1, -(-total // (PIECE_ROWS * AIM_PARTS))), LARGEST_ROWS // PIECE_ROWS)
    number = 0
    for file, ends in zip(files, pieces, strict=True):
        start, row = file.begin, 1
        for first in range(0, len(ends), n_together):
            group = ends[first : first + n_together]
            stop, n_rows = group[-1][0], sum(n for _, n in group)
            yield Part(number, file.name, start, stop, row, n_rows)
            number, start, row = number + 1, stop, row + n_rows


def _scan_lines(
    file: IO[bytes], path: Path, name: str, form: str, piece_rows: int
) -> tuple[InputFile, list[tuple[int, int]]]:
    digest, place, n_rows, ends_in = hashlib.sha256(), 0, 0, RecordEnds()
    pieces: list[tuple[int, int]] = []
    head, begin, header_end = b"", 0, None
    has_header = form in ("csv", "tsv")
    last_end = 0
    while block := file.read(_BLOCK):
        while form == "csv" and block.endswith(b"\r") and (following := file.read(1)):
            block += following  # which may be the line feed of this line end
        if place == 0:
            if block.startswith((b"\xff\xfe", b"\xfe\xff")):
                raise DataError(f"{path}: this file is UTF-16; save it as UTF-8")
            begin = 3 if block.startswith(b"\xef\xbb\xbf") else 0
        digest.update(block)
        codes = np.frombuffer(block, np.uint8)
        skipped = begin if place == 0 else 0
        ends = ends_in(codes[skipped:]) + skipped if form == "csv" else np.flatnonzero(codes == _NEWLINE)
        ends = ends + place + 1
        if has_header and header_end is None:
            head += block
            if len(ends):
                header_end, ends = int(ends[0]), ends[1:]
        for end in ends[piece_rows - 1 - n_rows % piece_rows :: piece_rows].tolist():
            pieces.append((end, piece_rows))
        n_rows += len(ends)
        place += len(block)
        last_end = int(ends[-1]) if len(ends) else last_end
    header: tuple[str, ...] = ()
    if has_header:
        header_end = place if header_end is None else header_end
        header = _header(head[begin:header_end], path, form)
    rows_begin = begin if header_end is None else header_end
    if place > max(last_end, rows_begin):
        n_rows += 1  # a last line without its line feed, or a last record without its closing quote
    if rest := n_rows - sum(n for _, n in pieces):
        pieces.append((place, rest))
    return InputFile(name, digest.hexdigest(), n_rows, rows_begin, header), pieces


def _header(raw: bytes, path: Path, form: str) -> tuple[str, ...]:
    try:
        records = csv_records(raw.decode("utf-8"), form)
    except UnicodeDecodeError:
        raise DataError(f"{path}, line 1: not UTF-8; convert the file with iconv -f GB18030 -t UTF-8") from None
    if not records or not any(records[0]):
        raise DataError(f"{path}: no header; expected the names of the columns in the first line")
    _check_unique(records[0], path)
    return tuple(records[0])


def _check_unique(names: Sequence[str], path: Path) -> None:
    """Rows have values by column, so all but one column of a name would be lost."""
    if len(set(names)) < len(names):
        raise DataError(f"{path}: two columns have the same name in {', '.join(names)}")


def _scan_parquet(path: Path, name: str, piece_rows: int) -> tuple[InputFile, list[tuple[int, int]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        n_rows, names = file.metadata.num_rows, file.schema_arrow.names
    except (pa.ArrowException, OSError) as reason:
        raise DataError(f"{path}: not a Parquet file that can be read ({reason})") from reason
    _check_unique(names, path)
    ends = [*range(piece_rows, n_rows, piece_rows), n_rows] if n_rows else []
    pieces = [(end, end - start) for start, end in zip([0, *ends], ends, strict=False)]
    return InputFile(name, sha256(path), n_rows), pieces


def columns_of(path: Path, file: InputFile, form: str) -> tuple[str, ...]:
    """The names of the columns of a file; empty for lines of text and JSON lines, of which each has its own."""
    if form != "parquet":
        return file.header
    import pyarrow.parquet as pq

    return tuple(pq.read_schema(path).names)


def _format_of(file: Path) -> str | None:
    form = FORMATS.get(suffix(file))
    return None if form == "parquet" and file.suffix.lower() != ".parquet" else form


def changed_files(before: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> str:
    """How two lists of `InputFile`s, as manifests have them, differ: the first file that is missing, new or changed,
    and how many others there are."""
    old, new = ({file["name"]: file for file in files} for files in (before, now))
    differing = sorted(name for name in {**old, **new} if old.get(name) != new.get(name))
    if not differing:
        return "the input files are in another order"
    first = differing[0]
    how = "is missing" if first not in new else "is new" if first not in old else "has other contents"
    others = f", and {counted(len(differing) - 1, 'other file')} too" if len(differing) > 1 else ""
    return f"{first or 'the input file'} {how}{others}"
