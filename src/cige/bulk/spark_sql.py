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
from typing import TYPE_CHECKING, Any

from cige.bulk.annotator import Annotator, AnnotatorSettings
from cige.bulk.arrow import ENTITIES, ERROR, annotate_batch
from cige.bulk.inputs import Part
from cige.bulk.job import Job, with_parts
from cige.json_text import to_json

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import Broadcast
    from pyspark.sql import DataFrame

Batches = Iterable["pa.RecordBatch"]
TASKS_PER_CORE = 16  # a task costs 0.15 s however little it does: Python 3.11 reads pyspark's archive again for each
TRIES = 4  # of a task, as on a cluster; a local session has one unless its master says more
ENTITIES_DDL = "array<struct<start: int, end: int, label: string, text: string, score: float>>"


def annotate(frame: DataFrame, settings: AnnotatorSettings | None = None, **columns: str) -> DataFrame:
    """A DataFrame with columns for entities and errors added; lazy, as Spark's transformations are.

    Args:
        settings: None for the bundled model; `offsets="utf-16"` fits the strings of Java and Scala.
        columns: `text_column`, `entities_column` and `error_column`, as in `annotate_batch`.
    """
    from pyspark.sql.types import StringType, StructType, _parse_datatype_string

    names = {"entities_column": ENTITIES, "error_column": ERROR} | columns
    schema = StructType(list(frame.schema.fields))
    schema.add(names["entities_column"], _parse_datatype_string(ENTITIES_DDL)).add(names["error_column"], StringType())
    return frame.mapInArrow(_batch_mapper(settings or AnnotatorSettings(), columns), schema)


def annotate_parts(job: Job, parts: Sequence[Part], *, n_tasks: int) -> Iterator[dict[str, Any]]:
    """Annotate parts of a job; their records at the end. A task that Spark tries again goes on after its last commit.

    Input and output are on storage of all nodes. The active session is used, or a local one of `n_tasks` cores.
    """
    from pyspark.sql import SparkSession

    if not parts:
        return
    session = SparkSession.getActiveSession()
    if session is None:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # as this one, not whatever python3 is
        session = SparkSession.builder.master(f"local[{n_tasks},{TRIES}]").appName("cige annotate").getOrCreate()
    given = session.sparkContext.broadcast(
        list(parts)
    )  # a DataFrame of them would be read by Python workers of its own
    n_cores = max(n_tasks, session.sparkContext.defaultParallelism)
    numbers = session.range(0, len(parts), 1, min(len(parts), TASKS_PER_CORE * n_cores))
    for row in numbers.mapInArrow(_part_mapper(with_parts(job, []), given), "record string").collect():
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
    """One for each Python worker, which Spark keeps for its next tasks."""
    return Annotator.open(settings)
