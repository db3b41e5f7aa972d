"""Ray, Spark and Dask: real ones, small; the same bytes as local processes write, whatever is killed."""

from __future__ import annotations

import os
import signal
import threading

import bulk_engines
import bulk_jobs
import psutil
import pyarrow as pa
import pytest

from cige.bulk import AnnotatorSettings, annotate_batch

TABLE = pa.table({"text": [*bulk_jobs.SENTENCES * 3, None], "id": list(range(16))})


@pytest.fixture(scope="module")
def undisturbed(texts, tmp_path_factory):
    output = tmp_path_factory.mktemp("undisturbed") / "out"
    bulk_jobs.done(bulk_jobs.plan(texts, output, part_rows=4))
    return bulk_jobs.contents(output)


@pytest.fixture(scope="module")
def expected() -> list[dict]:
    return annotate_batch(bulk_jobs.annotator(), TABLE).to_pylist()


def workers(name: str) -> list[psutil.Process]:
    """The processes that this one started, they or their children, with a name in their command line."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if name in " ".join(process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.fixture(scope="module")
def environment():
    with bulk_engines.environment():
        yield


def test_ray_loses_nothing_when_an_actor_is_killed(ray_cluster, texts, undisturbed, tmp_path):
    from cige.bulk.ray_data import annotate_parts

    job = bulk_jobs.plan(texts, tmp_path / "out", part_rows=4)
    job.begin()
    numbers = []
    for record in annotate_parts(job, job.pending(), n_actors=2):
        numbers.append(record["part"])
        if len(numbers) == 1:
            os.kill(workers("ray::MapWorker")[0].pid, signal.SIGKILL)
    assert sorted(numbers) == list(range(15))
    job.finish()
    assert bulk_jobs.contents(tmp_path / "out") == undisturbed


def test_a_ray_dataset(ray_cluster, expected):
    from cige.bulk.ray_data import annotate

    rows = annotate(ray_cluster.data.from_arrow(TABLE), AnnotatorSettings(), batch_rows=5).take_all()
    assert sorted(rows, key=lambda row: row["id"]) == expected


@pytest.fixture(scope="module")
def spark(environment):
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2,4]")  # two cores, four attempts of a task
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "512m")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def test_spark_loses_nothing_when_a_worker_is_killed(spark, texts, undisturbed, tmp_path, monkeypatch):
    """A task of several parts goes on after those that are done: their files stay as they are."""
    from cige.bulk import spark_sql

    monkeypatch.setattr(spark_sql, "TASKS_PER_CORE", 1)
    job = bulk_jobs.plan(texts, tmp_path / "out", part_rows=4)
    job.begin()
    records: list[dict] = []
    thread = threading.Thread(target=lambda: records.extend(spark_sql.annotate_parts(job, job.pending(), n_tasks=2)))
    thread.start()
    while thread.is_alive() and not list((tmp_path / "out").glob("commits/part*")):
        thread.join(0.01)
    for worker in workers("pyspark.daemon")[-1:]:
        os.kill(worker.pid, signal.SIGKILL)
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "out" / "commits").glob("part*")}
    thread.join()
    assert 0 < len(before) < 15 and before == {file: file.stat().st_mtime_ns for file in before}
    assert sorted(record["part"] for record in records) == list(range(15))
    job.finish()
    assert bulk_jobs.contents(tmp_path / "out") == undisturbed


def test_a_spark_frame(spark, expected):
    from cige.bulk.spark_sql import annotate

    frame = spark.createDataFrame([(row["text"], row["id"]) for row in TABLE.to_pylist()], "text string, id bigint")
    found = [row.asDict(recursive=True) for row in annotate(frame).collect()]
    assert sorted(found, key=lambda row: row["id"]) == expected


def test_dask_partitions(expected, tmp_path):
    """The recipe of docs/bulk.md."""
    import dask.dataframe as dd
    import pandas as pd

    from cige.bulk import output_schema

    def annotated(frame: pd.DataFrame) -> pd.DataFrame:
        table = pa.Table.from_pandas(frame, preserve_index=False, schema=TABLE.schema)
        return annotate_batch(bulk_jobs.annotator(), table).to_pandas(types_mapper=pd.ArrowDtype)

    frame = dd.from_pandas(TABLE.to_pandas(), npartitions=3)
    meta = output_schema(TABLE.schema).empty_table().to_pandas(types_mapper=pd.ArrowDtype)
    result = frame.map_partitions(annotated, meta=meta)
    result.to_parquet(tmp_path / "annotated", compute_kwargs={"scheduler": "synchronous"})
    read = dd.read_parquet(tmp_path / "annotated", dtype_backend="pyarrow")
    for found in (result.compute(scheduler="synchronous"), read.compute(scheduler="synchronous")):
        table = pa.Table.from_pandas(found, preserve_index=False, schema=output_schema(TABLE.schema))
        assert table.to_pylist() == expected
