"""Files of annotation tools: doccano, Label Studio and displaCy.

Offsets count code points in all of them. Label Studio before 1.4 wrote UTF-16 code units; such files are detected,
since each span also has its text.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cige.data.documents.document import (
    Document,
    an_object,
    checked,
    json_text,
    read_spans,
    span_dicts,
    text_of,
    without,
)
from cige.data.sentence import Span
from cige.data.text_files import write_text
from cige.errors import DataError
from cige.json_text import JsonObject
from cige.text.utf16 import utf16_offsets

_DOCCANO = ("start_offset", "end_offset", "label")
_OF_DOCCANO = ("text", "data", "label", "labels", "entities")  # names that it uses itself


def doccano_document(record: JsonObject, number: int) -> Document:
    """An object with "text" and "label" (or "labels"): [[start, end, label], ...]; or with "entities"."""
    key = next((key for key in ("label", "labels", "entities") if key in record), None)
    text = text_of(record, "text" if "text" in record else "data")
    spans = read_spans(record[key], text, keys=_DOCCANO) if key else ()
    return Document(text, spans, without(record, *_OF_DOCCANO, "relations"), key is not None, number)


def has_doccano_relations(record: JsonObject) -> bool:
    return bool(record.get("relations"))


def write_doccano(path: Path, documents: Iterable[Document]) -> None:
    lines = []
    for _, document in checked(documents):
        labels = {"label": [[s.start, s.end, s.label] for s in document.spans]}
        others = without(document.meta, *_OF_DOCCANO)
        lines.append(json_text({"text": document.text} | labels | others) + "\n")
    write_text(path, "".join(lines))


def displacy_document(record: JsonObject, number: int) -> Document:
    """An object with "text" and "ents", as used by displaCy (`manual=True`) and spaCy's Doc.to_json."""
    text = text_of(record)
    title = {"title": record["title"]} if record.get("title") is not None else {}
    return Document(text, read_spans(record.get("ents"), text), title, line=number)


def write_displacy(path: Path, documents: Iterable[Document]) -> None:
    objects = [
        {
            "text": document.text,
            "ents": [{"start": s.start, "end": s.end, "label": s.label} for s in document.spans],
            "title": document.meta.get("title"),
        }
        for _, document in checked(documents)
    ]
    write_text(path, json_text(objects, indent=1) + "\n")


def write_label_studio(path: Path, documents: Iterable[Document]) -> None:
    """Write tasks for a project whose configuration has <Labels name="label" toName="text"> and <Text name="text">.

    Suggested spans become predictions, from which an annotator starts, and other spans annotations.
    """
    tasks = []
    for number, document in checked(documents):
        result = [
            {
                "id": f"{number}-{k}",
                "from_name": "label",
                "to_name": "text",
                "type": "labels",
                "value": {name: item for name, item in span.items() if name != "label"} | {"labels": [span["label"]]},
            }
            for k, span in enumerate(span_dicts(document), 1)
        ]
        kind = "predictions" if document.is_suggested else "annotations"
        answers = {kind: [{"result": result}]} if document.is_labelled else {}
        tasks.append({"data": {"text": document.text} | without(document.meta, "text")} | answers)
    write_text(path, json_text(tasks, indent=1) + "\n")


def label_studio_document(record: JsonObject, number: int) -> Document:
    """A task with its first annotation that was not cancelled, or an object of JSON-MIN.

    A task without annotations has the spans of its first prediction, marked as suggested. Tasks without either, and
    tasks that the annotator skipped, are unlabelled.
    """
    if "data" not in record:  # JSON-MIN: {"text": ..., "label": [{"start", "end", "text", "labels"}, ...]}
        text, values = text_of(record), record.get("label")
        return Document(text, _spans(values or [], text), without(record, "text", "label"), values is not None, number)
    data = an_object(record["data"])
    key = next((name for name in ("text", *data) if isinstance(data.get(name), str)), "text")
    text = text_of(data, key)
    annotations = _objects(record, "annotations")
    answers = [a for a in annotations if not a.get("was_cancelled")]
    is_suggested = not annotations  # a skipped task has a cancelled annotation
    if is_suggested:
        answers = _objects(record, "predictions")
    meta = without(data, key)
    if not answers:
        return Document(text, (), meta, False, number)
    values = [one.get("value") for one in _objects(answers[0], "result") if one.get("type") == "labels"]
    return Document(text, _spans(values, text), meta, True, number, is_suggested)


def has_label_studio_relations(record: JsonObject) -> bool:
    """Whether an annotation of a task has a relation between two of its entities."""
    results = (answer.get("result") for answer in _objects(record, "annotations"))
    parts = (part for result in results if isinstance(result, list) for part in result)
    return any(isinstance(part, dict) and part.get("type") == "relation" for part in parts)


def _objects(record: JsonObject, key: str) -> list[JsonObject]:
    """The objects of the list with this key, which may be missing."""
    objects = record.get(key) or []
    if not isinstance(objects, list):
        raise DataError(f"expected a list under {key!r}, found {type(objects).__name__}")
    return [one for one in objects if isinstance(one, dict)]


def _spans(values: Any, text: str) -> tuple[Span, ...]:
    if not isinstance(values, list):
        raise DataError(f"expected a list of results, found {type(values).__name__}")
    entries = []
    for value in map(an_object, values):
        labels = value.get("labels")
        if not isinstance(labels, list) or not labels:
            raise DataError(f"expected a list of names under 'labels', found {labels!r}")
        given = {name: value[name] for name in ("start", "end", "text") if value.get(name) is not None}
        entries += [given | {"label": label} for label in labels]
    try:
        return read_spans(entries, text)
    except DataError as wrong:
        if max(text, default="") <= "\uffff":
            raise
        to_units = utf16_offsets(text)
        places = {to_units(place): place for place in range(len(text) + 1)}
        for entry in entries:
            units = {name: entry.get(name) for name in ("start", "end")}
            entry |= {name: places.get(unit) if type(unit) is int else None for name, unit in units.items()}
        try:
            return read_spans(entries, text)
        except DataError:
            raise wrong from None  # with the offsets of the file
