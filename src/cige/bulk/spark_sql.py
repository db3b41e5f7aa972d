"""Spark: annotate a DataFrame with mapInArrow, or the parts of a job with one task each.

from cige.bulk import AnnotatorSettings
from cige.bulk.spark_sql import annotate
annotated = annotate(spark.read.parquet("posts/"), AnnotatorSettings(offsets="utf-16"), text_column="body")
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cige.bulk.annotator import Annotator, AnnotatorSettings
from cige.bulk.arrow import ENTITIES, ERROR, annotate_batch
from cige.bulk.inputs import Part
from cige.bulk.job import Job, with_parts
from cige.json_text import to_json

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

Batches = Iterable["pa.RecordBatch"]
TRIES = 4  # attempts per task, as on a cluster; the default of a local session is one
ENTITIES_DDL = "array<struct<start: int, end: int, label: string, text: string, score: float>>"


def annotate(frame: DataFrame, settings: AnnotatorSettings | None = None, **columns: str) -> DataFrame:
    """Add columns of entities and errors to a DataFrame; lazy, like all transformations of Spark.

    Args:
        settings: None for the bundled model; `offsets="utf-16"` matches the strings of Java and Scala.
        columns: `text_column`, `entities_column` and `error_column`, as in `annotate_batch`.
    """
    from pyspark.sql.types import StringType, StructType, _parse_datatype_string

    names = {"entities_column": ENTITIES, "error_column": ERROR} | columns
    schema = StructType(list(frame.schema.fields))
    schema.add(names["entities_column"], _parse_datatype_string(ENTITIES_DDL)).add(names["error_column"], StringType())
    return frame.mapInArrow(_batch_mapper(settings or AnnotatorSettings(), columns), schema)


def annotate_parts(job: Job, parts: Sequence[Part], *, n_tasks: int) -> Iterator[dict[str, Any]]:
    """Annotate parts of a job, one per task; the records are returned at the end.

    All nodes must share the storage. The active session is used, or a new local one with `n_tasks` cores.
    """
    from pyspark.sql import SparkSession

    if not parts:
        return
    session = SparkSession.getActiveSession()
    if session is None:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the current interpreter
        session = SparkSession.builder.master(f"local[{n_tasks},{TRIES}]").appName("cige annotate").getOrCreate()
    rows = [(to_json(asdict(part)),) for part in parts]
    frame = session.createDataFrame(session.sparkContext.parallelize(rows, len(rows)), "part string")
    for row in frame.mapInArrow(_part_mapper(with_parts(job, [])), "record string").collect():
        yield json.loads(row.record)


def _batch_mapper(settings: AnnotatorSettings, columns: dict[str, str]) -> Callable[[Batches], Batches]:
    def mapped(batches: Batches) -> Batches:
        for batch in batches:
            yield annotate_batch(_annotator(settings), batch, **columns)

    return mapped


def _part_mapper(job: Job) -> Callable[[Batches], Batches]:
    def mapped(batches: Batches) -> Batches:
        import pyarrow as pa

        for batch in batches:
            parts = [Part(**json.loads(text)) for text in batch.column("part").to_pylist()]
            records = [to_json(job.annotate(_annotator(job.settings), part)) for part in parts]
            yield pa.RecordBatch.from_pydict({"record": pa.array(records, pa.string())})

    return mapped


@lru_cache(maxsize=1)
def _annotator(settings: AnnotatorSettings) -> Annotator:
    """The Annotator of a Python worker, which Spark reuses for further tasks."""
    return Annotator.open(settings)
