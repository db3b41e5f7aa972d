"""The Arrow core: a RecordBatch with a column of texts in, the same with entities and errors as columns out.

    batch.schema           text: string, ...
    annotated.schema       text: string, ..., entities: list<struct<start, end, label, text, score>>, error: string

A row has entities, perhaps none, or an error that says why it could not be read; never both.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from cige.bulk.annotator import Annotation, Annotator
from cige.entities.entity import Entity
from cige.errors import DataError

TEXT, ENTITIES, ERROR = "text", "entities", "error"  # names of columns, unless others are asked for
ENTITY_FIELDS = [
    pa.field("start", pa.int32(), nullable=False),
    pa.field("end", pa.int32(), nullable=False),
    pa.field("label", pa.string(), nullable=False),
    pa.field("text", pa.string(), nullable=False),
    pa.field("score", pa.float32(), nullable=False),
]
ENTITIES_TYPE = pa.list_(pa.struct(ENTITY_FIELDS))


def output_schema(
    schema: pa.Schema, *, text_column: str = TEXT, entities_column: str = ENTITIES, error_column: str = ERROR
) -> pa.Schema:
    """The schema of an annotated batch: the columns that were there, then entities and errors.

    Raises:
        DataError: there is no such column of texts, it is no column of strings, or one of the new names is taken.
    """
    if text_column not in schema.names:
        raise DataError(f"no column {text_column!r}; the columns are {', '.join(schema.names) or 'none'}")
    found = schema.field(text_column).type
    if not _is_text(found):
        raise DataError(f"column {text_column!r} holds {found}, expected strings")
    for name in (entities_column, error_column):
        if name in schema.names:
            raise DataError(f"a column {name!r} is there already; rename it, or give another name for the new one")
    return schema.append(pa.field(entities_column, ENTITIES_TYPE)).append(pa.field(error_column, pa.string()))


def annotate_batch(
    annotator: Annotator,
    batch: pa.RecordBatch | pa.Table,
    *,
    text_column: str = TEXT,
    entities_column: str = ENTITIES,
    error_column: str = ERROR,
) -> Any:
    """A RecordBatch or Table of any number of rows with their entities; rows keep their order and other columns.

    Returns:
        The same kind of object, with the schema that `output_schema` tells.

    Raises:
        DataError: as `output_schema` does. A row that cannot be read has an error in place of entities instead.
    """
    names = {"text_column": text_column, "entities_column": entities_column, "error_column": error_column}
    schema = output_schema(batch.schema, **names)
    annotations = annotator.annotate(_texts(batch.column(schema.get_field_index(text_column))))
    added = [entities_array(annotations), pa.array([a.error for a in annotations], pa.string())]
    return type(batch).from_arrays([*batch.columns, *added], schema=schema)


def entities_array(annotations: list[Annotation]) -> pa.Array:
    """list<struct<start, end, label, text, score>>[n]; null where there is an error."""
    rows = [None if a.entities is None else [_struct(e) for e in a.entities] for a in annotations]
    return pa.array(rows, ENTITIES_TYPE)


def _struct(entity: Entity) -> dict[str, Any]:
    return {field.name: getattr(entity, field.name) for field in ENTITY_FIELDS}


def _texts(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The texts; bytes that are no UTF-8, which Arrow lets in, stay bytes."""
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


def _is_text(found: pa.DataType) -> bool:
    if pa.types.is_dictionary(found):
        found = found.value_type
    return pa.types.is_string(found) or pa.types.is_large_string(found) or pa.types.is_string_view(found)
