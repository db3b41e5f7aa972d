"""Rows: read the rows of a part of a file, and write annotated rows."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isinf
from pathlib import Path
from typing import IO, Any

from cige.bulk.csv_records import has_open_quote
from cige.bulk.inputs import InputFile, Part
from cige.data.documents.tables import NO_NUL, can_hold, csv_records
from cige.data.text_files import has_surrogate
from cige.errors import DataError
from cige.folders.packed import UNPACKING_ERRORS, unpack
from cige.json_text import JsonObject, json_bytes, to_json

OUTPUTS = {
    "txt": ("jsonl", "csv", "tsv", "parquet"),
    "jsonl": ("jsonl",),
    "csv": ("csv", "tsv", "jsonl", "parquet"),
    "tsv": ("tsv", "csv", "jsonl", "parquet"),
    "parquet": ("parquet", "jsonl"),
}
"""The output formats of each input format, the default first."""
SOURCE_COLUMNS = ("source_file", "source_row")
"""The columns for the name of the input file and for `Row.number`."""


@dataclass(frozen=True)
class Row:
    """A row of a file, with its number from 1 (in CSV, that of the record, without the header).

    Attributes:
        values: its values by column; lines of text only have the column of texts. Empty if it cannot be read.
        raw: the original row, for the list of rejected rows; None for a line of text, which is its only value.
        error: the reason why it cannot be read, or None.
    """

    number: int
    values: JsonObject
    raw: Any
    error: str | None = None


def read_rows(source: Path, file: InputFile, part: Part, form: str, text_column: str) -> list[Row]:
    """The rows of a part, in order, without blank lines of JSONL, CSV and TSV; raises a DataError if unreadable."""
    path = source / file.name
    if form == "parquet":
        return _parquet_rows(path, part)
    raw = _stretch(str(path), part.start, part.stop)
    if form in ("csv", "tsv"):
        return list(_csv_rows(raw, part, form, file.header))
    lines = enumerate(raw.removesuffix(b"\n").split(b"\n"), part.first_row)
    return [
        _row(number, line.removesuffix(b"\r"), form, text_column)
        for number, line in lines
        if form == "txt" or line.strip()
    ]


def format_rows(rows: Sequence[JsonObject], form: str, columns: Sequence[str], entities_column: str) -> bytes:
    """A file of rows with lists of Entity in `entities_column`, as JSON lines, or as CSV or TSV with a header."""
    if form == "jsonl":
        plain = (row | {entities_column: [e.to_dict() for e in row[entities_column]]} for row in rows)
        return b"".join(json_bytes(row) + b"\n" for row in plain)
    out = io.StringIO(newline="")
    names = [*columns, entities_column]
    writer = csv.writer(out) if form == "csv" else _TsvWriter(out)
    writer.writerow(names)
    for row in rows:
        entities = to_json([entity.to_dict() for entity in row[entities_column]])
        writer.writerow([*(row[name] for name in columns), entities])
    return out.getvalue().encode()


def source_clash(names: Iterable[str]) -> str | None:
    """What is wrong with the names of a row to which SOURCE_COLUMNS are added, or None."""
    clashes = [name for name in SOURCE_COLUMNS if name in names]
    return f"it has a value under {clashes[0]!r} already; rename it, or give --no-source" if clashes else None


def reason_not_to_write(
    values: JsonObject, form: str, entities_column: str, *, with_source: bool = False
) -> str | None:
    """The reason why a row cannot be written in a format, with SOURCE_COLUMNS if `with_source`, or None."""
    if entities_column in values:
        return f"it has a value under {entities_column!r} already; give another name by --entities-column"
    if with_source and (clash := source_clash(values)):
        return clash
    if form == "jsonl" and not all(isinstance(x, str) for x in values.values()):
        try:
            to_json(values)
        except TypeError as reason:
            return f"JSON cannot hold it ({reason}); write Parquet"
    if form == "tsv" and any("\t" in str(x) or "\n" in str(x) or "\r" in str(x) for x in values.values()):
        return "TSV cannot hold a tab or a line break within a field; write CSV or JSON lines"
    if form == "csv" and not can_hold(values.values()):
        return NO_NUL
    if form != "jsonl" and any(isinstance(x, str) and has_surrogate(x) for x in values.values()):
        return "it has a lone surrogate, which only JSON lines can hold"
    return None


class _TsvWriter:
    """Writes fields separated by tabs, without quoting, since readers of TSV treat quotes as ordinary characters."""

    def __init__(self, out: io.StringIO):
        self._out = out

    def writerow(self, fields: Sequence[object]) -> None:
        self._out.write("\t".join(map(str, fields)) + "\n")


def _row(number: int, line: bytes, form: str, text_column: str) -> Row:
    """A line of text or of JSON."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as reason:
        what = f"byte 0x{line[reason.start]:02x} at column {reason.start + 1} is not UTF-8"
        return Row(number, {}, line.decode("utf-8", "surrogateescape"), what)
    if form == "txt":
        return Row(number, {text_column: text}, None)
    try:
        record = json.loads(text, parse_constant=_no_number, parse_float=_finite_number)
    except _UnwritableNumber as reason:
        return Row(number, {}, text, str(reason))
    except (ValueError, RecursionError) as reason:
        return Row(number, {}, text, f"not JSON ({reason})")
    if not isinstance(record, dict):
        return Row(number, {}, text, f"expected an object, found {type(record).__name__}")
    if text_column not in record:
        return Row(number, {}, text, f"no {text_column!r} in it; it has {', '.join(map(repr, record)) or 'nothing'}")
    return Row(number, record, text)


class _UnwritableNumber(Exception):
    """A number that could not be written again: JSON has no NaN, and no number beyond the range of floats."""


def _no_number(name: str) -> float:
    raise _UnwritableNumber(f"{name} is not JSON; leave the value out, or write null or a string")


def _finite_number(text: str) -> float:
    number = float(text)
    if isinf(number):
        raise _UnwritableNumber(f"the number {text} is too large for a float of 64 bits; write it as a string")
    return number


def _csv_rows(raw: bytes, part: Part, form: str, header: Sequence[str]) -> Iterator[Row]:
    text = raw.decode("utf-8", "surrogateescape")  # the only surrogates are bytes that are not UTF-8
    try:
        records = csv_records(text, form)
    except csv.Error as reason:
        raise DataError(f"records {part.first_row:,} and on: not {form.upper()} ({reason})") from reason
    unclosed = part.first_row + len(records) - 1 if form == "csv" and has_open_quote(raw) else None
    for number, record in enumerate(records, part.first_row):
        if not record:
            continue
        if number == unclosed:
            yield Row(number, {}, record, "a quote in it is never closed, so it extends to the end of the file")
        elif len(record) != len(header):
            yield Row(number, {}, record, f"{len(record)} fields, expected {len(header)}: {', '.join(header)}")
        elif any(map(has_surrogate, record)):
            yield Row(number, {}, record, "bytes that are not UTF-8")
        else:
            yield Row(number, dict(zip(header, record, strict=True)), record)


def _parquet_rows(path: Path, part: Part) -> list[Row]:
    table = parquet_table(path, part)
    try:
        columns = [_python_values(column) for column in table.columns]
    except UnicodeDecodeError as reason:
        rows = f"rows {part.first_row:,} and on"
        raise DataError(f"{path}: {rows} hold strings that are not UTF-8 ({reason})") from reason
    rows_of_part = (dict(zip(table.column_names, values, strict=True)) for values in zip(*columns, strict=True))
    return [Row(number, row, row) for number, row in enumerate(rows_of_part, part.first_row)]


class ArrowValue:
    """A value that Python has no object for, such as a day after the year 9999, nanoseconds if pandas is not installed,
    or a time of an unknown time zone. Parquet is written with it, and JSON cannot hold it.
    """

    def __init__(self, kind: object):
        self._kind = kind

    def __repr__(self) -> str:
        return f"<{self._kind}>"


def _python_values(column: Any) -> list[Any]:
    """The values of an Arrow column; those of a column of which Python cannot hold one are ArrowValues."""
    try:
        return column.to_pylist()
    except UnicodeDecodeError:
        raise
    except (ValueError, OverflowError, KeyError):  # KeyError: a time zone
        return [ArrowValue(column.type) if is_there else None for is_there in column.is_valid().to_pylist()]


def parquet_table(path: Path, part: Part) -> Any:
    """The rows of a part of a Parquet file as a Table; only their row groups are read."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, memory_map=True) as file:
        groups, first, skipped = [], 0, None
        for group in range(file.metadata.num_row_groups):
            after = first + file.metadata.row_group(group).num_rows
            if after > part.start and first < part.stop:
                groups.append(group)
                skipped = part.start - first if skipped is None else skipped
            first = after
        return file.read_row_groups(groups).slice(skipped or 0, part.stop - part.start)


def chosen_rows(table: Any, numbers: Sequence[int]) -> Any:
    """The rows of a Table with these numbers, which ascend. Slices, since `take` does not support every type."""
    import pyarrow as pa

    ends = [k + 1 for k in range(len(numbers)) if k + 1 == len(numbers) or numbers[k + 1] != numbers[k] + 1]
    slices = [table.slice(numbers[first], end - first) for first, end in zip([0, *ends], ends, strict=False)]
    return pa.concat_tables(slices) if slices else table.slice(0, 0)


def _stretch(path: str, start: int, stop: int) -> bytes:
    """Bytes [start, stop) of a decompressed file; parts are usually read in order, so it is decompressed only once."""
    try:
        stream = _open(path)
        if stream.tell() > start:
            _open.cache_clear()
            stream = _open(path)
        stream.seek(start)
        data = stream.read(stop - start)
    except UNPACKING_ERRORS as reason:
        raise DataError(f"{path} is damaged or cut short ({reason}); fetch or pack it again") from reason
    if len(data) != stop - start:
        raise DataError(f"{path}: {len(data):,} bytes at {start:,}, expected {stop - start:,}; it became shorter")
    return data


@lru_cache(maxsize=1)
def _open(path: str) -> IO[bytes]:
    return unpack(open(path, "rb"))
