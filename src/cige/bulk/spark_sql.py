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
from functools import lru_cache
from typing import TYPE_CHECKING

from cige.bulk.annotator import Annotator, AnnotatorSettings
from cige.bulk.arrow import ENTITIES, ERROR, annotate_batch
from cige.bulk.inputs import Part
from cige.bulk.job import Job
from cige.bulk.packages import check_installed
from cige.bulk.records import PartRecord
from cige.json_text import to_json

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import Broadcast
    from pyspark.sql import DataFrame

Batches = Iterable["pa.RecordBatch"]
TASKS_PER_CORE = 16  # each task costs 0.15 s, because Python 3.11 reads pyspark's archive again for each
TRIES = 4  # attempts per task, as on a cluster; the default of a local session is one
ENTITIES_DDL = (
    "array<struct<start: int, end: int, label: string, text: string, score: float, forced: boolean, "
    "parts: array<array<int>>>>"
)


def annotate(frame: DataFrame, settings: AnnotatorSettings | None = None, **columns: str) -> DataFrame:
    """Add columns of entities and errors to a DataFrame; lazy, like all transformations of Spark.

    Args:
        settings: None for the bundled model; `offsets="utf-16"` matches the strings of Java and Scala.
        columns: `text_column`, `entities_column` and `error_column`, as in `annotate_batch`.

    Raises:
        CigeError: a package is missing.
    """
    check_installed("the engine spark", "spark")
    from pyspark.sql.types import StringType, StructType, _parse_datatype_string

    names = {"entities_column": ENTITIES, "error_column": ERROR} | columns
    schema = StructType(list(frame.schema.fields))
    schema.add(names["entities_column"], _parse_datatype_string(ENTITIES_DDL)).add(names["error_column"], StringType())
    return frame.mapInArrow(_batch_mapper(settings or AnnotatorSettings(), columns), schema)


def annotate_parts(job: Job, parts: Sequence[Part], *, n_tasks: int) -> Iterator[PartRecord]:
    """Annotate parts of a job; the records are returned at the end. A retried task continues after its last commit.

    All nodes must share the storage. The active session is used, or a new local one with `n_tasks` cores. Raises a
    CigeError if a package is missing.
    """
    check_installed("the engine spark", "spark")
    from pyspark.sql import SparkSession

    if not parts:
        return
    session = SparkSession.getActiveSession()
    if session is None:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the current interpreter
        session = SparkSession.builder.master(f"local[{n_tasks},{TRIES}]").appName("cige annotate").getOrCreate()
    given = session.sparkContext.broadcast(list(parts))  # a DataFrame of them would be read by separate Python workers
    n_cores = max(n_tasks, session.sparkContext.defaultParallelism)
    numbers = session.range(0, len(parts), 1, min(len(parts), TASKS_PER_CORE * n_cores))
    try:
        rows = numbers.mapInArrow(_part_mapper(job.without_parts(), given), "record string").collect()
    finally:
        given.destroy()  # the session may be the user's and outlive the job
    for row in rows:
        yield json.loads(row.record)


def _batch_mapper(settings: AnnotatorSettings, columns: dict[str, str]) -> Callable[[Batches], Batches]:
    def mapped(batches: Batches) -> Batches:
        for batch in batches:
            yield annotate_batch(_annotator(settings), batch, **columns)

    return mapped


def _part_mapper(job: Job, parts: Broadcast[list[Part]]) -> Callable[[Batches], Batches]:
    def mapped(batches: Batches) -> Batches:
        import pyarrow as pa

        for batch in batches:
            for number in batch.column("id").to_pylist():
                part = parts.value[number]
                record = job.commit_of(part) or job.annotate(_annotator(job.settings), part)
                yield pa.RecordBatch.from_pydict({"record": pa.array([to_json(record)], pa.string())})

    return mapped


@lru_cache(maxsize=1)
def _annotator(settings: AnnotatorSettings) -> Annotator:
    """The Annotator of a Python worker, which Spark reuses for further tasks."""
    return Annotator.open(settings)
