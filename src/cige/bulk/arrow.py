"""Arrow: add columns of entities and errors to a RecordBatch or Table with a column of texts.

    batch.schema           text: string, ...
    annotated.schema       text: string, ..., entities: list<struct<start, end, label, text, score, forced, parts>>,
                           error: string

Each row has either a list of entities, which may be empty, or an error with the reason why it could not be processed.
The schema does not depend on the model: the parts of an entity without gaps are an empty list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from cige.bulk.annotator import ENTITY_FIELDS, Annotation, Annotator
from cige.errors import DataError

TEXT, ENTITIES, ERROR = "text", "entities", "error"  # the default column names
_TYPES = {
    "start": pa.int32(),
    "end": pa.int32(),
    "label": pa.string(),
    "text": pa.string(),
    "score": pa.float32(),
    "forced": pa.bool_(),
    "parts": pa.list_(pa.list_(pa.int32())),
}


def entities_type(names: Sequence[str] = ENTITY_FIELDS) -> pa.DataType:
    """The type of a column of entities with these fields of Entity."""
    return pa.list_(pa.struct([pa.field(name, _TYPES[name], nullable=False) for name in names]))


def output_schema(
    schema: pa.Schema, *, text_column: str = TEXT, entities_column: str = ENTITIES, error_column: str = ERROR
) -> pa.Schema:
    """The schema of an annotated batch: the original columns, then entities and errors.

    Raises:
        DataError: there is no such column or more than one, it does not contain strings, or one of the new names
            already exists.
    """
    if text_column not in schema.names:
        raise DataError(f"no column {text_column!r}; the columns are {', '.join(schema.names) or 'none'}")
    if schema.names.count(text_column) > 1:
        raise DataError(f"two columns have the name {text_column!r}; rename one of them")
    text_type = schema.field(text_column).type
    if not _is_text(text_type):
        raise DataError(f"column {text_column!r} holds {text_type}, expected strings")
    for name in (entities_column, error_column):
        if name in schema.names:
            raise DataError(f"a column {name!r} is there already; rename it, or give another name for the new one")
    return schema.append(pa.field(entities_column, entities_type())).append(pa.field(error_column, pa.string()))


def annotate_batch(
    annotator: Annotator,
    batch: pa.RecordBatch | pa.Table,
    *,
    text_column: str = TEXT,
    entities_column: str = ENTITIES,
    error_column: str = ERROR,
) -> Any:
    """Add the entities of all rows to a RecordBatch or Table; the order and the other columns do not change.

    Returns:
        An object of the same type, with the schema of `output_schema`.

    Raises:
        DataError: the errors of `output_schema`. Rows that cannot be processed raise no exception; their error is in
            the column of errors.
    """
    names = {"text_column": text_column, "entities_column": entities_column, "error_column": error_column}
    schema = output_schema(batch.schema, **names)
    annotations = annotator.annotate(_texts(batch.column(schema.get_field_index(text_column))))
    added = [entities_array(annotations), pa.array([a.error for a in annotations], pa.string())]
    return type(batch).from_arrays([*batch.columns, *added], schema=schema)


def entities_array(annotations: list[Annotation], names: Sequence[str] = ENTITY_FIELDS) -> pa.Array:
    """The entities of each row, of `entities_type(names)`; null for rows with an error."""
    rows = [
        None if a.entities is None else [{name: getattr(e, name) for name in names} for e in a.entities]
        for a in annotations
    ]
    return pa.array(rows, entities_type(names))


def _texts(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The texts; values that are not UTF-8, which Arrow does not check, are returned as bytes."""
    try:
        return column.to_pylist()
    except UnicodeDecodeError:
        raw = column.cast(pa.large_binary()).to_pylist()
        return [None if value is None else _decoded(value) for value in raw]


def _decoded(value: bytes) -> str | bytes:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value


def _is_text(column_type: pa.DataType) -> bool:
    if pa.types.is_dictionary(column_type):
        column_type = column_type.value_type
    return (
        pa.types.is_string(column_type) or pa.types.is_large_string(column_type) or pa.types.is_string_view(column_type)
    )
