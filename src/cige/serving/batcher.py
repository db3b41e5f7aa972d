"""Batcher: one thread reads the windows of all requests that wait, a budget of lattice nodes at once."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

from cige.api import NER
from cige.lattice.lattice import Lattice
from cige.tagging.prediction import ScoredSpan, predict_spans
from cige.tagging.selection import Selection

RATE_MEMORY = 0.8  # share of the old estimate in the new one
NO_ROOM = 64  # where less than this share of the queue is free, requests are refused before they are parsed
TURN = 512  # characters of a request that others wait for, at most: then it is their turn
LEAST_RATE = 500.0  # characters per second that are assumed before anything was read, to say when to try again


class Overloaded(Exception):
    """Too much waits already; `retry_after` is in how many seconds, at least 1, there should be room."""

    def __init__(self, retry_after: int):
        super().__init__(f"too many requests wait; try again in {retry_after} s")
        self.retry_after = retry_after


class Stopping(Exception):
    """The server takes no more requests."""


class Work(Protocol):
    """What one request asks to be read.

    Attributes:
        n_chars: characters to read, which is how long it waits for and how much room it takes.
    """

    @property
    def n_chars(self) -> int: ...

    def prepare(self) -> Reading:
        """Called once, in the batcher's thread. Errors are the answer."""
        ...


class Reading(Protocol):
    """A request while it is read.

    Attributes:
        ner: what reads it.
        weights: identifies the weights of what reads it; windows are read together only where it is the same object.
        selection: which entities are reported.
        lattices: of all windows of its texts.
    """

    @property
    def ner(self) -> NER: ...

    @property
    def weights(self) -> object: ...

    @property
    def selection(self) -> Selection: ...

    @property
    def lattices(self) -> Sequence[Lattice]: ...

    def further(self, spans: list[list[ScoredSpan]]) -> Reading | None:
        """What the spans found in each lattice show that must be read before there is an answer; None if nothing.

        It waits for its turns in the queue as what was read did, until the same deadline.
        """
        ...

    def answer(self, spans: list[list[ScoredSpan]]) -> Any:
        """The answer, from the spans found in each lattice."""
        ...


@dataclass
class _Job:
    work: Work
    deadline: float
    future: Future[Any] = field(default_factory=Future)
    reading: Reading | None = None
    spans: list[list[ScoredSpan]] = field(default_factory=list)
    n_taken: int = 0

    def begin(self, reading: Reading) -> None:
        """Read these windows from now on."""
        self.reading, self.spans, self.n_taken = reading, [[] for _ in reading.lattices], 0

    @property
    def is_over(self) -> bool:
        """Whether nobody waits for it any more."""
        return self.future.done() or time.monotonic() > self.deadline


class Batcher:
    """Reads requests in one thread; the arithmetic of a batch uses as many threads as the model does.

    A batch has at most `batch_nodes` nodes, or one window. It takes the windows of the waiting requests in turns, so
    that a long text does not hold up short ones. Whatever arrives while a batch is read is in the next one: nobody
    waits for a batch to fill.

    Args:
        waiting_chars: characters of requests that may wait; see `submit`. One request counts for a quarter of them at
            most, because the others have their turns between its windows.
        observe: called with the number of windows and of nodes, and the seconds, of each batch.
    """

    def __init__(
        self,
        *,
        batch_nodes: int,
        waiting_chars: int,
        observe: Callable[[int, int, float], None] = lambda windows, nodes, seconds: None,
    ):
        self._batch_nodes, self._waiting_chars, self._observe = batch_nodes, waiting_chars, observe
        self._jobs: deque[_Job] = deque()
        self._wake = threading.Condition()
        self._is_stopping = False
        self._load = 0  # what `_jobs` count for
        self._before_turn = 0  # characters that are read before the first turn of one more
        self._read: tuple[float, float] | None = None  # characters of the last batches, and their seconds
        self._thread = threading.Thread(target=self._run, name="cige-batcher", daemon=True)
        self._thread.start()

    @property
    def n_jobs(self) -> int:
        """Requests that wait or are being read."""
        return len(self._jobs)

    @property
    def n_chars(self) -> int:
        """Their characters."""
        return sum(job.work.n_chars for job in list(self._jobs))

    @property
    def busy_for(self) -> int:
        """In how many seconds there should be room, 0 where there is some for a short request now."""
        with self._wake:
            has_room = self._load + self._waiting_chars // NO_ROOM <= self._waiting_chars
            return 0 if has_room else self._seconds()

    @property
    def wait_s(self) -> float:
        """Seconds until one more request would have its first turn, at the speed of the last batches; 0 at first."""
        return 0.0 if self._read is None else self._before_turn / self._rate

    def submit(self, work: Work, *, deadline: float) -> Future[Any]:
        """Ask for an answer; cancelling the future takes the request out before the next batch.

        Args:
            deadline: as `time.monotonic` counts; a request that was not answered by then leaves, and its future is
                cancelled.

        Raises:
            Overloaded: with this request more characters than `waiting_chars` would wait, and some do already.
            Stopping: `stop` was called.
        """
        job = _Job(work, deadline)
        with self._wake:
            if self._is_stopping:
                raise Stopping("the server is stopping")
            if self._is_full(job):
                self._drop_what_is_over()
            if self._is_full(job):
                raise Overloaded(self._seconds())
            self._jobs.append(job)
            self._load += self._weight(job)
            self._before_turn += _of_turn(job)
            self._wake.notify()
        return job.future

    def stop(self, *, timeout_s: float) -> None:
        """Take no more requests, read those that wait, and end the thread."""
        with self._wake:
            self._is_stopping = True
            self._wake.notify()
        self._thread.join(timeout_s)

    def is_alive(self) -> bool:
        """Whether requests are read."""
        return self._thread.is_alive()

    def _run(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._jobs or self._is_stopping)
                self._drop_what_is_over()
                jobs = list(self._jobs)
                if not jobs and self._is_stopping:
                    return
            started, n_chars = time.monotonic(), self._read_batch(jobs)
            if n_chars:
                chars, seconds = self._read or (0.0, 0.0)
                taken = time.monotonic() - started
                self._read = (RATE_MEMORY * chars + n_chars, RATE_MEMORY * seconds + taken)

    def _drop_what_is_over(self) -> None:
        for job in [job for job in self._jobs if job.is_over]:
            self._leave(job)
            job.future.cancel()

    def _leave(self, job: _Job) -> None:
        self._jobs.remove(job)
        self._load -= self._weight(job)
        self._before_turn -= _of_turn(job)

    @property
    def _rate(self) -> float:
        """Characters per second: long batches count for more than short ones, whose rate says little."""
        chars, seconds = self._read or (LEAST_RATE, 1.0)
        return max(1.0, chars / max(1e-6, seconds))

    def _seconds(self) -> int:
        return max(1, math.ceil(self._load / self._rate))

    def _weight(self, job: _Job) -> int:
        return min(job.work.n_chars, max(1, self._waiting_chars // 4))

    def _is_full(self, job: _Job) -> bool:
        return bool(self._jobs) and self._load + self._weight(job) > self._waiting_chars

    def _read_batch(self, jobs: Sequence[_Job]) -> int:
        """Read one batch and answer the requests that end with it; returns how many characters were read."""
        taken, n_nodes = self._take(jobs)
        started, n_chars = time.monotonic(), 0
        for group in _alike(taken):
            n_chars += sum(_lattice(job, k).n_chars for job, k in group)
            self._read_group(group)
        if taken:
            self._observe(len(taken), n_nodes, time.monotonic() - started)
        for job in jobs:
            if job.reading is not None and not job.is_over and job.n_taken == len(job.reading.lattices):
                self._go_on(job, job.reading)
        return n_chars

    def _go_on(self, job: _Job, reading: Reading) -> None:
        """What comes once all windows of a request were read: the answer, or more to read."""
        try:
            further = reading.further(job.spans)
            answer = None if further is not None else reading.answer(job.spans)
        except Exception as error:
            further, answer = None, error
        if further is None:
            self._end(job, answer)
        else:
            job.begin(further)

    def _take(self, jobs: Sequence[_Job]) -> tuple[list[tuple[_Job, int]], int]:
        """The windows of the next batch, one of each request in turn, and the number of their nodes."""
        taken: list[tuple[_Job, int]] = []
        n_nodes, left = 0, deque(jobs)
        while left:
            job = left.popleft()
            reading = self._prepared(job)
            if reading is None or job.n_taken == len(reading.lattices):
                continue
            size = reading.lattices[job.n_taken].n_nodes
            if taken and n_nodes + size > self._batch_nodes:
                break
            taken.append((job, job.n_taken))
            n_nodes += size
            job.n_taken += 1
            left.append(job)
        return taken, n_nodes

    def _prepared(self, job: _Job) -> Reading | None:
        if job.reading is None and not job.future.done():
            try:
                job.begin(job.work.prepare())
            except Exception as error:
                self._end(job, error)
        return job.reading

    def _read_group(self, group: Sequence[tuple[_Job, int]]) -> None:
        """Read windows together; if that fails, each by itself, so that only the request that is to blame fails."""
        reading = group[0][0].reading
        assert reading is not None
        try:
            found = predict_spans(
                reading.ner.model, [_lattice(job, k) for job, k in group], reading.selection, batch_size=len(group)
            )
        except Exception as error:
            if len(group) == 1:
                self._end(group[0][0], error)
                return
            for place in group:
                if not place[0].future.done():
                    self._read_group([place])
            return
        for (job, k), spans in zip(group, found, strict=True):
            job.spans[k] = spans

    def _end(self, job: _Job, answer: Any) -> None:
        with self._wake:
            if job in self._jobs:
                self._leave(job)
        if job.future.set_running_or_notify_cancel() if not job.future.done() else False:
            if isinstance(answer, Exception):
                job.future.set_exception(answer)
            else:
                job.future.set_result(answer)


def _of_turn(job: _Job) -> int:
    return min(job.work.n_chars, TURN)


def _lattice(job: _Job, k: int) -> Lattice:
    assert job.reading is not None
    return job.reading.lattices[k]


def _alike(taken: Sequence[tuple[_Job, int]]) -> list[list[tuple[_Job, int]]]:
    """Windows of one model whose entities are reported alike, which can be read together."""
    groups: list[list[tuple[_Job, int]]] = []
    for place in taken:
        reading = place[0].reading
        assert reading is not None
        for group in groups:
            first = group[0][0].reading
            assert first is not None
            if first is reading or (first.weights is reading.weights and first.selection == reading.selection):
                group.append(place)
                break
        else:
            groups.append([place])
    return groups
