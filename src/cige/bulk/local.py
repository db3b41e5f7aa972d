"""The local engine: several processes annotate parts; a process that dies is replaced."""

from __future__ import annotations

import multiprocessing
import signal
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from cige.bulk.annotator import Annotator
from cige.bulk.inputs import Part
from cige.bulk.job import Job
from cige.bulk.records import PartRecord
from cige.errors import CigeError
from cige.folders.processes import child_environment

_ADVICE = (
    ", most often because memory ran out: try fewer --processes, a smaller --batch-size, or --max-chars to leave out "
    "long texts"
)
MAX_DEATHS = 3  # maximum number of processes that may die during the same part


def annotate_parts(job: Job, parts: Sequence[Part], *, n_processes: int) -> Iterator[PartRecord]:
    """Annotate parts with local processes; yields the record of each part when it is committed, in any order.

    If a process dies, it is replaced and its part is annotated again. The processes end when the iterator is closed.
    Raises the CigeError of a worker, or one if several processes died during the same part.
    """
    waiting, deaths = deque(parts), Counter[int]()
    sent = job.without_parts()
    workers: dict[Connection, _Worker] = {}
    try:
        while waiting or workers:
            while waiting and len(workers) < n_processes:
                worker = _start(sent, waiting.popleft())
                workers[worker.pipe] = worker
            for pipe in wait(list(workers)):
                assert isinstance(pipe, Connection)
                worker = workers[pipe]
                try:
                    kind, value = pipe.recv()
                except (EOFError, OSError):
                    _count_death(worker, deaths)
                    waiting.appendleft(worker.part)
                    del workers[pipe]
                    continue
                if kind == "error":
                    raise value
                if waiting:
                    worker.take(waiting.popleft())
                else:
                    worker.stop()
                    del workers[pipe]
                yield value
    finally:
        for worker in workers.values():
            worker.process.kill()
            worker.stop()


@dataclass
class _Worker:
    process: Any
    pipe: Connection
    part: Part

    def take(self, part: Part) -> None:
        self.part = part
        with suppress(OSError):  # it died, which is detected when its pipe is read
            self.pipe.send(part)

    def stop(self) -> None:
        self.pipe.close()
        self.process.join()


def _start(job: Job, part: Part) -> _Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    with child_environment({"OMP_NUM_THREADS": "1"}):  # for reproducible sums, and as one process runs per core
        process = context.Process(target=_work, args=(theirs, job), daemon=True)
        process.start()
    theirs.close()  # so that the pipe ends when the process does
    worker = _Worker(process, ours, part)
    worker.take(part)
    return worker


def _work(pipe: Connection, job: Job) -> None:
    # Ctrl-C is sent to all processes of a terminal, but only the main process handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        annotator = Annotator.of_worker(job.settings)
        while True:
            part = pipe.recv()
            pipe.send(("done", job.annotate(annotator, part)))
    except (EOFError, BrokenPipeError):  # the main process has ended
        pass
    except (CigeError, OSError) as error:
        pipe.send(("error", job.as_told(error)))


def _count_death(worker: _Worker, deaths: Counter[int]) -> None:
    worker.process.join()
    part = worker.part
    deaths[part.number] += 1
    if deaths[part.number] == MAX_DEATHS:
        rows = f"rows {part.first_row:,} to {part.first_row + part.n_rows - 1:,}"
        advice = _ADVICE if worker.process.exitcode == -signal.SIGKILL else ""
        raise CigeError(
            f"{MAX_DEATHS} processes died while they read {part.file or 'the file'}, {rows} (exit code "
            f"{worker.process.exitcode}{advice}); the other parts are kept"
        )
