"""Ray Data: annotate a Dataset or the parts of a job with a pool of actors, each of which loads the model once.

import ray
from cige.bulk import AnnotatorSettings
from cige.bulk.ray_data import annotate
annotated = annotate(ray.data.read_parquet("posts/"), AnnotatorSettings(), text_column="body", n_actors=8)
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cige import errors
from cige.bulk.annotator import Annotator, AnnotatorSettings
from cige.bulk.arrow import annotate_batch
from cige.bulk.inputs import Part
from cige.bulk.job import Job
from cige.bulk.packages import check_installed
from cige.bulk.records import PartRecord
from cige.errors import CigeError
from cige.json_text import to_json

if TYPE_CHECKING:
    import pyarrow as pa
    import ray.data

BATCH_ROWS = 1024  # rows per batch of Ray, which is divided into batches of sentences by size


class BatchAnnotator:
    """The callable of each actor: adds entities and errors to an Arrow table."""

    def __init__(self, settings: AnnotatorSettings, columns: dict[str, str]):
        self._annotator, self._columns = Annotator.open(settings), columns

    def __call__(self, batch: pa.Table) -> pa.Table:
        return annotate_batch(self._annotator, batch, **self._columns)


class PartAnnotator:
    """The callable of each actor of a job: annotates parts and returns the records of their commits.

    Errors that a user can fix are returned as records too, since Ray would wrap them in exceptions of its own.
    """

    def __init__(self, job: Job):
        self._job, self._annotator, self._error = job, None, ""
        try:
            self._annotator = Annotator.of_worker(job.settings)
        except (CigeError, OSError) as error:
            self._error = _error_record(error, job)

    def __call__(self, batch: pa.Table) -> pa.Table:
        import pyarrow as pa

        parts = [Part(**json.loads(text)) for text in batch.column("part").to_pylist()]
        return pa.table({"record": [self._annotated(part) for part in parts]})

    def _annotated(self, part: Part) -> str:
        if self._annotator is None:
            return self._error
        try:
            return to_json(self._job.annotate(self._annotator, part))
        except (CigeError, OSError) as error:
            return _error_record(error, self._job)


def _error_record(error: CigeError | OSError, job: Job) -> str:
    told = job.as_told(error)
    return to_json({"error": str(told), "type": type(told).__name__})


def annotate(
    dataset: ray.data.Dataset,
    settings: AnnotatorSettings | None = None,
    *,
    n_actors: int = 1,
    gpus_per_actor: float = 0.0,
    batch_rows: int = BATCH_ROWS,
    **columns: str,
) -> ray.data.Dataset:
    """Add columns of entities and errors to a Dataset; lazy, like all transformations of Ray.

    Args:
        settings: None for the bundled model.
        n_actors: number of actors, each of which loads the model once; the actors of a node share its mapped files.
        gpus_per_actor: share of a GPU per actor; to use it, set a device in `settings`.
        columns: `text_column`, `entities_column` and `error_column`, as in `annotate_batch`.
    """
    check_installed("the engine ray", "ray")
    arguments = (settings or AnnotatorSettings(), columns)
    return _mapped(dataset, BatchAnnotator, arguments, n_actors, gpus_per_actor, batch_rows)


def annotate_parts(
    job: Job, parts: Sequence[Part], *, n_actors: int, gpus_per_actor: float = 0.0
) -> Iterator[PartRecord]:
    """Annotate parts of a job; yields the record of each part when it is committed. All nodes must share the storage.

    The current Ray session is used, or that of RAY_ADDRESS, or a new local one. Raises a CigeError if a package is
    missing, Ray could not be started, an actor or a node died and Ray did not replace it, or a worker reports an error.
    """
    check_installed("the engine ray", "ray")
    import ray.data
    import ray.exceptions

    if not parts:
        return
    _start()
    dataset = ray.data.from_items([{"part": to_json(asdict(part))} for part in parts], override_num_blocks=len(parts))
    n_actors = min(n_actors, len(parts))
    try:
        records = _mapped(dataset, PartAnnotator, (job.without_parts(),), n_actors, gpus_per_actor, 1).iter_rows()
        for row in records:
            record = json.loads(row["record"])
            if "error" in record:
                raise getattr(errors, record["type"], CigeError)(record["error"])
            yield record
    except ray.exceptions.RayTaskError:  # a mistake in the code of a worker
        raise
    except ray.exceptions.RayError as reason:  # a killed actor has many of them, depending on what it was doing
        raise CigeError(
            f"a Ray actor died: {_last_line(reason)} Parts that are done are kept; run the same command again"
        ) from reason


def _start() -> None:
    """Connect to the cluster of RAY_ADDRESS, or start a local one, unless the program has done so."""
    import ray

    try:
        if not ray.is_initialized():
            ray.init()
    except (OSError, RuntimeError, ValueError) as reason:
        raise CigeError(
            f"Ray could not be started: {_last_line(reason)} Nothing was annotated; run the same command again, or "
            "check RAY_ADDRESS"
        ) from reason


def _last_line(reason: BaseException) -> str:
    lines = str(reason).strip().splitlines() or [type(reason).__name__]
    return lines[-1] if lines[-1].endswith((".", "!", "?")) else f"{lines[-1]}."


def _mapped(dataset: Any, worker: type, arguments: tuple[Any, ...], n_actors: int, gpus: float, batch_rows: int) -> Any:
    import ray.data

    return dataset.map_batches(
        worker,
        fn_constructor_args=arguments,
        batch_size=batch_rows,
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(size=n_actors),
        num_gpus=gpus or None,
    )
