"""Lines of text, JSON lines and columns: the formats of `cige predict`, `cige annotate` and labelled sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from cige.data.columns import format_columns, parse_columns
from cige.data.documents.document import (
    Document,
    ReadingOptions,
    checked,
    json_text,
    left_out_of,
    read_objects,
    read_spans,
    span_dicts,
    text_of,
    without,
)
from cige.data.jsonl import format_json_lines, parse_json_lines
from cige.data.sentence import LabelledFile, Sentence, warn_of_repairs
from cige.data.text_files import read_text, write_text
from cige.errors import DataError
from cige.json_text import JsonObject

_CONLL = re.compile(r"([^ \t]+|[ \t])(?:[ \t]+([^ \t]+)){1,3}[ \t]*")
DOCSTART = "-DOCSTART-"


def read_txt(path: Path, options: ReadingOptions) -> list[Document]:
    """Read one unlabelled text per line."""
    content = read_text(path)
    lines = content.removesuffix("\n").split("\n") if content else []
    return [Document(line.removesuffix("\r"), is_labelled=False, line=n) for n, line in enumerate(lines, 1)]


def read_jsonl(path: Path, options: ReadingOptions) -> list[Document]:
    """Read objects with "text" and, if they are labelled, "entities"; other keys are kept as `meta`."""

    def read(record: JsonObject, number: int) -> Document:
        text = text_of(record)
        entities = record.get("entities", [])
        spans = read_spans(entities, text)
        meta = without(record, "text", "entities")
        return Document(text, spans, meta, "entities" in record, number, left_out=left_out_of(entities))

    return read_objects(path, "line", read)


def write_jsonl(path: Path, documents: Iterable[Document]) -> None:
    lines = []
    for _, document in checked(documents, parts=True):
        entities = {"entities": span_dicts(document)} if document.is_labelled else {}
        lines.append(json_text({"text": document.text} | entities | without(document.meta, "text", "entities")) + "\n")
    write_text(path, "".join(lines))


def read_cluener(path: Path, options: ReadingOptions) -> list[Document]:
    """Read CLUENER's objects: {"text", "label": {type: {surface: [[first, last], ...]}}}."""
    return _documents(parse_json_lines(read_text(path), name=str(path), form="cluener", nested=True), path)


def write_cluener(path: Path, documents: Iterable[Document]) -> None:
    write_text(path, format_json_lines(_sentences(documents), "cluener"))


def read_columns(path: Path, options: ReadingOptions, *, scheme: str = "auto") -> list[Document]:
    """Read one character and its tag per line, in any scheme."""
    labelled = parse_columns(read_text(path), name=str(path), scheme=scheme, repair_tags=options.repair)
    return _documents(labelled, path)


def read_conll(path: Path, options: ReadingOptions) -> list[Document]:
    """Read two to four columns: the first is a token and the last its tag; -DOCSTART- lines are skipped."""
    text = conll_as_columns(read_text(path), str(path))
    return _documents(parse_columns(text, name=str(path), repair_tags=options.repair), path)


def conll_as_columns(text: str, name: str) -> str:
    """The first and the last column of each line; line numbers do not change. Raises a DataError if a line has one
    column, or more than four."""
    lines = []
    for number, line in enumerate(text.split("\n"), 1):
        content = line.removesuffix("\r")
        if not content.strip(" \t") or content.startswith(DOCSTART):
            lines.append("")
            continue
        match = _CONLL.fullmatch(content)
        if match is None:
            n = len(content.split())
            raise DataError(f"{name}, line {number}: expected 2 to 4 columns, found {n} in {content[:40]!r}")
        lines.append(f"{match[1]} {match[2]}")
    return "\n".join(lines)


def write_columns(path: Path, documents: Iterable[Document], *, scheme: str = "BIO") -> None:
    write_text(path, format_columns(_sentences(documents), scheme))


def _documents(labelled: LabelledFile, path: Path) -> list[Document]:
    warn_of_repairs(str(path), labelled.repairs)
    return [Document(s.text, s.spans, line=s.line) for s in labelled.sentences]


def _sentences(documents: Iterable[Document]) -> list[Sentence]:
    return [Sentence(document.text, document.spans) for _, document in checked(documents)]
