"""Lines of text, JSON lines and columns: the formats of `cige predict`, `cige annotate` and labelled sentences."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cige.data.columns import format_columns, parse_columns
from cige.data.documents.document import (
    Document,
    ReadingOptions,
    checked,
    json_text,
    left_out_of,
    read_spans,
    span_dicts,
    text_of,
    without,
)
from cige.data.jsonl import format_json_lines, parse_json_lines
from cige.data.sentence import LabelledFile, Sentence, warn_of_repairs
from cige.data.text_files import read_text, write_text
from cige.json_text import JsonObject


def read_txt(path: Path, options: ReadingOptions) -> list[Document]:
    """Read one unlabelled text per line."""
    content = read_text(path)
    lines = content.removesuffix("\n").split("\n") if content else []
    return [Document(line.removesuffix("\r"), is_labelled=False, line=n) for n, line in enumerate(lines, 1)]


def jsonl_document(record: JsonObject, number: int) -> Document:
    """An object with "text" and, if it is labelled, "entities"; other keys are kept as `meta`."""
    text, entities = text_of(record), record.get("entities", [])
    spans, meta = read_spans(entities, text), without(record, "text", "entities")
    return Document(text, spans, meta, "entities" in record, number, left_out=left_out_of(entities))


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


def read_columns(
    path: Path, options: ReadingOptions, *, scheme: str = "auto", is_conll: bool = False
) -> list[Document]:
    """Read a character and its tag per line, or lines of CoNLL; see `parse_columns`."""
    text = read_text(path)
    labelled = parse_columns(text, name=str(path), scheme=scheme, repair_tags=options.repair, is_conll=is_conll)
    return _documents(labelled, path)


def write_columns(path: Path, documents: Iterable[Document], *, scheme: str = "BIO") -> None:
    write_text(path, format_columns(_sentences(documents), scheme))


def _documents(labelled: LabelledFile, path: Path) -> list[Document]:
    warn_of_repairs(str(path), labelled.repairs)
    return [Document(s.text, s.spans, line=s.line) for s in labelled.sentences]


def _sentences(documents: Iterable[Document]) -> list[Sentence]:
    return [Sentence(document.text, document.spans) for _, document in checked(documents)]
