"""Document: a text of any length with spans that may overlap, which is used to convert between file formats."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from cige.data.jsonl import check_writable, json_values, span_object, spans_of_list
from cige.data.sentence import Span, show_span
from cige.data.text_files import error_context, has_surrogate, read_text
from cige.errors import DataError
from cige.json_text import JsonObject, to_json
from cige.text.counted import counted
from cige.text.visible import one_line

_OF_SPANS = ("start", "end", "label", "text", "parts")


class LeftOutWarning(UserWarning):
    """A file has something that documents do not hold."""


@dataclass(frozen=True)
class Document:
    """A text and its spans.

    Attributes:
        text: the text as in the file, including line breaks.
        spans: sorted; [start, end) in code points of `text`. They may overlap.
        meta: other JSON values of the file for this text, by name.
        is_labelled: False if the file has no annotation for the text.
        is_suggested: whether the spans are unconfirmed predictions of a model; training and evaluation ignore such
            documents.
        line: the line at which it begins in its file, or its number in the file, from 1.
        left_out: what its entities have in the file and spans have not, such as their score.
    """

    text: str
    spans: tuple[Span, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    is_labelled: bool = True
    line: int | None = None
    is_suggested: bool = False
    left_out: frozenset[str] = field(default=frozenset(), compare=False)


@dataclass(frozen=True)
class ReadingOptions:
    """Options for reading, which are not in the file.

    Attributes:
        text_column, entities_column: columns of CSV, TSV and Parquet files.
        tag_names: the names of numeric tags, in order.
        repair: whether to repair invalid tag transitions.
    """

    text_column: str = "text"
    entities_column: str = "entities"
    tag_names: tuple[str, ...] = ()
    repair: bool = False


def read_spans(entries: Any, text: str, *, keys: Sequence[str] = ("start", "end", "label")) -> tuple[Span, ...]:
    """The spans of a list of entities (see `spans_of_list`); raises a DataError if it is no list, too."""
    if not isinstance(entries, list):
        raise DataError(f"expected a list of entities, found {type(entries).__name__}")
    return tuple(spans_of_list(entries, text, keys=keys))


def left_out_of(entries: Sequence[Any]) -> frozenset[str]:
    """The keys with values of objects of entities that spans do not keep."""
    objects = [entry for entry in entries if isinstance(entry, dict)]
    keys = (key for entry in objects for key, value in entry.items() if value not in (None, False, []))
    return frozenset(keys).difference(_OF_SPANS)


def span_dicts(document: Document) -> list[JsonObject]:
    """The spans as objects with start, end, label and text, and the parts of discontinuous entities."""
    return [span_object(span, document.text) for span in document.spans]


def without(values: Mapping[str, Any], *taken: str) -> JsonObject:
    """The values of a record, or the `meta` of a document, without those whose names a format uses itself."""
    return {name: value for name, value in values.items() if name not in taken}


def checked(documents: Iterable[Document], *, parts: bool = False) -> Iterator[tuple[int, Document]]:
    """The documents with their numbers from 1. Raises a DataError if spans exceed a text, or the format cannot hold
    them.

    Args:
        parts: whether the format can hold discontinuous entities.
    """
    for number, document in enumerate(documents, 1):
        with error_context(f"documents to write, number {number}"):
            check_writable(document.text, document.spans)
            for span in document.spans:
                if span.parts and not parts:
                    shown = show_span(span, document.text)
                    raise DataError(f"{shown} is discontinuous, which only jsonl, csv, tsv, parquet and brat can hold")
        yield number, document


def json_text(value: Any, *, indent: int | None = None) -> str:
    """JSON that can be encoded in UTF-8, since lone surrogates are escaped; times and decimals of tables are strings.
    Raises a DataError if JSON cannot represent a value."""
    try:
        text = to_json(value, indent=indent)
    except TypeError:
        value = _json_value(value)
        text = to_json(value, indent=indent)
    return to_json(value, indent=indent, ensure_ascii=True) if has_surrogate(text) else text


def _json_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta | Decimal):
        return str(value)
    if value is None or isinstance(value, str | int | float):
        return value
    raise DataError(f"JSON cannot hold a value of type {type(value).__name__}; leave the column out, or write parquet")


def read_objects(
    path: Path,
    options: ReadingOptions,
    *,
    place: str,
    read: Callable[[JsonObject, int], Document],
    has_relations: Callable[[JsonObject], bool] | None = None,
) -> list[Document]:
    """The documents that `read` makes of the JSON objects of a file and their lines or numbers. Raises a DataError if
    the file is not JSON, or an object is no document; the message contains the place.

    Args:
        place: what an object is in messages, such as a line or a task.
        has_relations: whether an object has relations between entities, which are left out with a warning.
    """
    documents, n_related = [], 0
    for _, number, value in json_values(read_text(path), str(path)):
        with error_context(f"{path}, {place} {number}"):
            record = an_object(value)
            documents.append(read(record, number))
            n_related += has_relations is not None and has_relations(record)
    tell_relations(path, n_related)
    return documents


def tell_relations(path: Path, n_documents: int) -> None:
    """Warn if documents of a file have relations between entities, which are left out."""
    if n_documents:
        documents = counted(n_documents, "document")
        warnings.warn(
            f"{path}: the relations between entities in {documents} are left out; cige reads the entities alone",
            LeftOutWarning,
            stacklevel=2,
        )


def an_object(value: Any) -> JsonObject:
    """Return `value` if it is a JSON object; raises a DataError otherwise."""
    if not isinstance(value, dict):
        raise DataError(f"expected an object, found {type(value).__name__}")
    return value


def text_of(record: Mapping[str, Any], key: str = "text") -> str:
    """The string with this key; raises a DataError if there is none."""
    text = record.get(key)
    if not isinstance(text, str):
        has = f"it has {', '.join(map(repr, record)) or 'nothing'}"
        found = f"found {type(text).__name__}" if key in record else one_line(has, 200)
        raise DataError(f"expected a string under {key!r}; {found}")
    return text
