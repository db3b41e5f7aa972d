"""Tables: CSV, TSV and Parquet files with a column of texts and, if they are labelled, a column of entities.

Entities are a list of {start, end, label}: JSON in a field of CSV and TSV, list<struct> (or JSON) in Parquet.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from cige.data.documents.document import (
    Document,
    ReadingOptions,
    checked,
    json_text,
    left_out_of,
    read_spans,
    span_dicts,
    without,
)
from cige.data.text_files import error_context, read_text, write_bytes, write_text
from cige.errors import DataError
from cige.json_text import JsonObject
from cige.text.visible import one_line

BATCH_ROWS = 1000
NO_NUL = "Python before 3.11 cannot write a NUL character as CSV; write jsonl"


def write_csv(path: Path, documents: Iterable[Document]) -> None:
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    for number, fields in enumerate(_table(documents)):
        if not can_hold(fields):
            raise DataError(f"document {number}: {NO_NUL}")
        writer.writerow(fields)
    write_text(path, out.getvalue())


def write_tsv(path: Path, documents: Iterable[Document]) -> None:
    lines = []
    for number, fields in enumerate(_table(documents)):
        if any(set(field) & set("\t\n\r") for field in fields):
            raise DataError(f"document {number}: TSV cannot hold a tab or a line break within a field; write csv")
        lines.append("\t".join(fields) + "\n")
    write_text(path, "".join(lines))


def read_parquet(path: Path, options: ReadingOptions) -> list[Document]:
    rows, _ = parquet_rows(path)
    documents = []
    for number, row in enumerate(rows, 1):
        with error_context(f"{path}, row {number}"):
            documents.append(_document(row, options, number))
    return documents


def write_parquet(path: Path, documents: Iterable[Document]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    listed = [document for _, document in checked(documents, parts=True)]
    fields = [("start", pa.int32()), ("end", pa.int32()), ("label", pa.string()), ("text", pa.string())]
    if any(span.parts for document in listed for span in document.spans):
        fields.append(("parts", pa.list_(pa.list_(pa.int32()))))
    try:
        columns = {"text": pa.array([d.text for d in listed], pa.string())}
        columns |= {name: pa.array([d.meta.get(name) for d in listed]) for name in _meta_names(listed)}
        spans = [span_dicts(d) if d.is_labelled else None for d in listed]
        columns["entities"] = pa.array(spans, pa.list_(pa.struct(fields)))
        out = io.BytesIO()
        pq.write_table(pa.table(columns), out, compression="zstd")
    except (pa.ArrowException, ValueError, OverflowError, TypeError) as reason:
        message = one_line(str(reason))
        raise DataError(f"{path}: Parquet cannot hold these documents ({message}); write jsonl") from None
    write_bytes(path, out.getvalue())


def parquet_columns(path: Path) -> list[str]:
    """The column names of a Parquet file, from its metadata; empty if it cannot be read."""
    import pyarrow.parquet as pq

    try:
        return list(pq.read_schema(path).names)
    except Exception:  # see `_unreadable`
        return []


def parquet_rows(path: Path) -> tuple[Iterator[JsonObject], dict[bytes, bytes]]:
    """The rows of a Parquet file, a batch at a time, and the metadata of its schema.

    A file of a few kilobytes may say that it has billions of rows, so they are not read before they are needed. Raises
    a DataError if it cannot be read, or two columns have the same name; the iterator raises it too.
    """
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        names, facts = file.schema_arrow.names, file.schema_arrow.metadata or {}
    except FileNotFoundError:
        raise DataError(f"no file at {path}; check the name") from None
    except Exception as reason:
        raise _unreadable(path, reason) from reason
    _check_names(names, path)
    return _rows(file, path), facts


def _rows(file: Any, path: Path) -> Iterator[JsonObject]:
    with file:
        try:
            for batch in file.iter_batches(BATCH_ROWS):
                yield from batch.to_pylist()
        except Exception as reason:
            raise _unreadable(path, reason) from reason


def _unreadable(path: Path, reason: Exception) -> DataError:
    """The error for damaged files and values that Python cannot represent, for which PyArrow raises many exceptions."""
    message = one_line(str(reason)) or type(reason).__name__
    return DataError(f"{path}: not a Parquet file that can be read ({message})")


def _check_names(names: Sequence[str], path: Path) -> None:
    if twice := [name for name, n in Counter(names).items() if n > 1]:
        raise DataError(f"{path}: two columns are called {one_line(repr(twice[0]), 80)}; rename one of them")


def can_hold(fields: Iterable[object]) -> bool:
    """Whether Python can write fields as CSV."""
    return sys.version_info >= (3, 11) or not any("\0" in str(field) for field in fields)


def csv_records(text: str, form: str) -> list[list[str]]:
    """The records of CSV or TSV text, which are empty for blank lines. Fields of TSV end at tabs and line ends, and
    quotes have no meaning in them. Raises a csv.Error if the text is not CSV."""
    if form == "tsv":
        lines = text.removesuffix("\n").split("\n")
        return [fields if (fields := line.removesuffix("\r").split("\t")) != [""] else [] for line in lines]
    csv.field_size_limit(1 << 30)
    return list(csv.reader(io.StringIO(text, newline="")))


def read_table(path: Path, options: ReadingOptions, *, form: str) -> list[Document]:
    """Read CSV or TSV, as `form` says."""
    try:
        records = [record for record in csv_records(read_text(path), form) if record]
    except csv.Error as reason:
        raise DataError(f"{path}: not CSV ({reason})") from None
    header, *rows = records or [[]]
    _check_names(header, path)
    table = []
    for number, record in enumerate(rows, 1):
        with error_context(f"{path}, record {number}"):
            if len(record) != len(header):
                raise DataError(f"{len(record)} fields, expected {len(header)}: {', '.join(header)}")
            table.append(_document(dict(zip(header, record, strict=True)), options, number))
    return table


def _document(row: JsonObject, options: ReadingOptions, number: int) -> Document:
    if options.text_column not in row:
        raise DataError(f"no column {options.text_column!r}; it has {', '.join(row)}; name one by --text-column")
    text, entities = row[options.text_column], row.get(options.entities_column)
    if not isinstance(text, str):
        raise DataError(f"the text is {type(text).__name__}, expected a string")
    if isinstance(entities, str):
        try:
            entities = json.loads(entities) if entities else None
        except (ValueError, RecursionError) as reason:
            raise DataError(f"column {options.entities_column!r} holds no JSON ({reason})") from None
    meta = without(row, options.text_column, options.entities_column)
    if entities is None:
        return Document(text, (), meta, False, number)
    return Document(text, read_spans(entities, text), meta, True, number, left_out=left_out_of(entities))


def _table(documents: Iterable[Document]) -> list[list[str]]:
    documents = list(documents)
    names = _meta_names(documents)
    rows = [["text", *names, "entities"]]
    for _, document in checked(documents, parts=True):
        values = [document.meta.get(name, "") for name in names]
        fields = [value if isinstance(value, str) else json_text(value) for value in values]
        rows.append([document.text, *fields, json_text(span_dicts(document)) if document.is_labelled else ""])
    return rows


def _meta_names(documents: Sequence[Document]) -> list[str]:
    return list(dict.fromkeys(name for document in documents for name in without(document.meta, "text", "entities")))
