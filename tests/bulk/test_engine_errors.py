"""What is said where Ray or Spark cannot be used, or a process of theirs dies; no engine is started for this."""

from __future__ import annotations

import json
from dataclasses import asdict
from types import SimpleNamespace

import bulk_jobs
import pyarrow as pa
import pytest
import ray
import ray.data
import ray.exceptions

from cige.bulk import packages, ray_data, spark_sql
from cige.cli import main
from cige.errors import CigeError, ModelError
from cige.json_text import to_json


@pytest.fixture
def job(tmp_path):
    (tmp_path / "texts.txt").write_text(bulk_jobs.lines(6), encoding="utf-8")
    planned = bulk_jobs.plan(tmp_path / "texts.txt", tmp_path / "out", part_rows=3)
    planned.begin()
    return planned


class Records:
    """A Dataset whose rows end with an exception."""

    def __init__(self, reason: BaseException):
        self._reason = reason

    def iter_rows(self):
        yield {"record": '{"part": 0}'}
        raise self._reason


def of_worker(cause: BaseException) -> BaseException:
    """An exception of a worker, as Ray reports it."""
    return ray.exceptions.RayTaskError("annotate", "Traceback: ...", cause).as_instanceof_cause()


def annotate_with(monkeypatch, job, reason: BaseException, expected: type[BaseException] = CigeError) -> BaseException:
    """The exception of a job whose second part fails with `reason`."""
    monkeypatch.setattr(ray_data, "_start", lambda: None)
    monkeypatch.setattr(ray.data, "from_items", lambda items, **options: items)
    monkeypatch.setattr(ray_data, "_mapped", lambda *args: Records(reason))
    found = []
    with pytest.raises(expected) as caught:
        for record in ray_data.annotate_parts(job, job.parts, n_actors=1):
            found.append(record)
    assert found == [{"part": 0}]
    return caught.value


@pytest.mark.parametrize(
    "reason",
    [
        ray.exceptions.RayActorError(None, "The actor died.\nIts process was killed."),
        ray.exceptions.ActorUnavailableError("The actor is away.\nIts process was killed.", None),
        ray.exceptions.WorkerCrashedError(),
        ray.exceptions.OutOfMemoryError("a process was killed"),
        ray.exceptions.NodeDiedError("a node died"),
        ray.exceptions.GetTimeoutError("nothing came"),
    ],
)
def test_a_process_of_ray_that_died_is_told_in_one_line(monkeypatch, job, reason):
    said = str(annotate_with(monkeypatch, job, reason))
    assert said.startswith("a Ray actor died: ") and "\n" not in said
    assert said.endswith(". Parts that are done are kept; run the same command again")


def batch_of(job) -> pa.Table:
    return pa.table({"part": [to_json(asdict(part)) for part in job.parts]})


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (ModelError("a worker has another lexicon"), ModelError, "a worker has another lexicon"),
        (OSError(28, "No space left on device", "/out/part"), CigeError, "/out/part: No space left on device"),
        (OSError("odd"), CigeError, "OUTPUT: odd"),
    ],
)
@pytest.mark.parametrize("when", ["open", "annotate"])
def test_an_error_of_a_worker_is_that_error(monkeypatch, job, error, kind, message, when):
    def fail(*args):
        raise error

    monkeypatch.setattr(ray_data.Annotator if when == "open" else ray_data.Job, when, fail)
    (record, _) = ray_data.PartAnnotator(job)(batch_of(job)).column("record").to_pylist()
    monkeypatch.setattr(ray_data, "_start", lambda: None)
    monkeypatch.setattr(ray.data, "from_items", lambda items, **options: items)
    monkeypatch.setattr(ray_data, "_mapped", lambda *args: SimpleNamespace(iter_rows=lambda: [{"record": record}]))
    with pytest.raises(kind) as caught:
        list(ray_data.annotate_parts(job, job.parts, n_actors=1))
    assert type(caught.value) is kind and str(caught.value) == message.replace("OUTPUT", str(job.output))


def test_a_worker_returns_the_records_of_its_parts(job):
    found = ray_data.PartAnnotator(job)(batch_of(job)).column("record").to_pylist()
    assert [json.loads(record)["part"] for record in found] == [0, 1] and job.pending() == []


def test_a_mistake_of_cige_in_a_worker_keeps_its_traceback(monkeypatch, job):
    reason = of_worker(ZeroDivisionError("division by zero"))
    assert annotate_with(monkeypatch, job, reason, ZeroDivisionError) is reason


@pytest.mark.parametrize("reason", [RuntimeError("no port\nis free"), ConnectionError("no answer"), ValueError("")])
def test_ray_that_does_not_start_is_told_in_one_line(monkeypatch, job, capsys, tmp_path, reason):
    def fail():
        raise reason

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", fail)
    assert main(["annotate", str(tmp_path / "texts.txt"), str(tmp_path / "new"), "--engine", "ray"]) == 2
    said = capsys.readouterr().err
    assert "Ray could not be started: " in said and "run the same command again" in said and said.count("\n") == 1


def test_ray_is_started_only_once(monkeypatch):
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(ray, "init", lambda: pytest.fail("started again"))
    ray_data._start()


@pytest.mark.parametrize("module", ["ray", "spark"])
def test_an_engine_without_pandas_names_its_extra(monkeypatch, job, module):
    monkeypatch.setattr(packages, "find_spec", lambda name: None if name == "pandas" else name)
    message = rf'the engine {module} needs pandas, which is not installed; .*pip install .*\[{module}\]"'
    engine = {"ray": ray_data, "spark": spark_sql}[module]
    with pytest.raises(CigeError, match=message):
        list(engine.annotate_parts(job, job.parts, **{"ray": {"n_actors": 1}, "spark": {"n_tasks": 1}}[module]))
    with pytest.raises(CigeError, match=message):
        engine.annotate(pa.table({"text": ["北京"]}))
