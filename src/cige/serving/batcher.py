"""Batcher: one thread predicts the windows of all waiting requests, in batches of a limited number of nodes."""

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

RATE_MEMORY = 0.8  # weight of the old estimate in the moving average
NO_ROOM = 64  # if less than this fraction (1/64) of the queue is free, requests are refused before they are parsed
TURN = 512  # maximum number of characters of a request per batch, before it is the turn of other requests
LEAST_RATE = 500.0  # initial estimate of characters per second, for Retry-After


class Overloaded(Exception):
    """The queue is full; it should have room after `retry_after` seconds, at least 1."""

    def __init__(self, retry_after: int):
        super().__init__(f"too many requests wait; try again in {retry_after} s")
        self.retry_after = retry_after


class Stopping(Exception):
    """The server does not accept further requests."""


class Work(Protocol):
    """The task of one request.

    Attributes:
        n_chars: number of characters of its texts.
        n_passes: how often they are processed at most; each pass takes as much time and space in the queue as its
            characters.
    """

    @property
    def n_chars(self) -> int: ...

    @property
    def n_passes(self) -> int: ...

    def prepare(self) -> Reading:
        """Prepare the request; called once, in the batcher's thread. An exception becomes the result of the request."""
        ...


class Reading(Protocol):
    """A request that is being processed.

    Attributes:
        ner: the model.
        weights: identifies the weights of the model; windows are batched together only if it is the same object.
        selection: which entities are reported.
        lattices: the lattices of all windows of its texts.
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
        """The next pass, which depends on the spans found in each lattice; None if the result is complete.

        Like the first pass, it waits for its turns in the queue, and it has the same deadline.
        """
        ...

    def answer(self, spans: list[list[ScoredSpan]]) -> Any:
        """The result, from the spans found in each lattice."""
        ...


@dataclass
class _Job:
    work: Work
    deadline: float
    future: Future[Any] = field(default_factory=Future)
    reading: Reading | None = None
    spans: list[list[ScoredSpan]] = field(default_factory=list)
    n_taken: int = 0
    n_ended: int = 0  # passes

    @property
    def n_ahead(self) -> int:
        """Maximum number of passes that have not ended."""
        return max(1, self.work.n_passes - self.n_ended)

    def begin(self, reading: Reading) -> None:
        """Start a pass over these windows."""
        self.reading, self.spans, self.n_taken = reading, [[] for _ in reading.lattices], 0

    @property
    def is_over(self) -> bool:
        """Whether no client is waiting for it any more."""
        return self.future.done() or time.monotonic() > self.deadline


class Batcher:
    """Processes requests in one thread; the computation of a batch uses the threads of the model.

    A batch has at most `batch_nodes` nodes, or one window. It takes windows of the waiting requests in turn, so that a
    long text does not delay short ones. Requests that arrive while a batch is computed are in the next batch; the
    batcher never waits for a batch to fill up.

    Args:
        waiting_chars: maximum number of waiting characters; see `submit`. One request counts as at most a quarter of
            them, because the windows of other requests are processed in turn with its own.
        observe: called with the numbers of windows and of nodes, and the time in seconds, of each batch.
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
        self._load = 0  # waiting characters, as counted for `waiting_chars`
        self._before_turn = 0  # characters that are processed before the first turn of a new request
        self._read: tuple[float, float] | None = None  # characters and seconds of the last batches
        self._thread = threading.Thread(target=self._run, name="cige-batcher", daemon=True)
        self._thread.start()

    @property
    def n_jobs(self) -> int:
        """Number of requests that are waiting or being processed."""
        return len(self._jobs)

    @property
    def n_chars(self) -> int:
        """Number of characters of these requests."""
        return sum(job.work.n_chars for job in list(self._jobs))

    @property
    def busy_for(self) -> int:
        """Estimated seconds until the queue has room; 0 if it has room for a short request."""
        with self._wake:
            has_room = self._load + self._waiting_chars // NO_ROOM <= self._waiting_chars
            return 0 if has_room else self._seconds()

    @property
    def wait_s(self) -> float:
        """Estimated seconds until the first turn of a new request, at the speed of the last batches; 0 initially."""
        return 0.0 if self._read is None else self._before_turn / self._rate

    def submit(self, work: Work, *, deadline: float) -> Future[Any]:
        """Submit a request; cancelling the future removes it before the next batch.

        Args:
            deadline: a time of `time.monotonic`; a request without a result by then is removed, and its future is
                cancelled.

        Raises:
            Overloaded: requests are waiting, and this one would exceed `waiting_chars`.
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
            self._count(job, 1)
            self._wake.notify()
        return job.future

    def stop(self, *, timeout_s: float) -> None:
        """Stop accepting requests, process the waiting ones, and end the thread."""
        with self._wake:
            self._is_stopping = True
            self._wake.notify()
        self._thread.join(timeout_s)

    def is_alive(self) -> bool:
        """Whether requests are being processed."""
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
        self._count(job, -1)

    def _count(self, job: _Job, sign: int) -> None:
        self._load += sign * self._weight(job)
        self._before_turn += sign * min(job.work.n_chars, TURN) * job.n_ahead

    @property
    def _rate(self) -> float:
        """Characters per second; long batches have more weight than short ones, whose rates vary."""
        chars, seconds = self._read or (LEAST_RATE, 1.0)
        return max(1.0, chars / max(1e-6, seconds))

    def _seconds(self) -> int:
        return max(1, math.ceil(self._load / self._rate))

    def _weight(self, job: _Job) -> int:
        return min(job.work.n_chars * job.n_ahead, max(1, self._waiting_chars // 4))

    def _is_full(self, job: _Job) -> bool:
        return bool(self._jobs) and self._load + self._weight(job) > self._waiting_chars

    def _read_batch(self, jobs: Sequence[_Job]) -> int:
        """Process one batch and answer the requests that end with it; returns the number of characters processed."""
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
        """Set the result of a request whose windows have all been processed, or start its next pass."""
        try:
            further = reading.further(job.spans)
            answer = None if further is not None else reading.answer(job.spans)
        except Exception as error:
            further, answer = None, error
        if further is None:
            self._end(job, answer)
        else:
            with self._wake:
                self._count(job, -1)
                job.n_ended += 1
                self._count(job, 1)
            job.begin(further)

    def _take(self, jobs: Sequence[_Job]) -> tuple[list[tuple[_Job, int]], int]:
        """The windows of the next batch, taken from the requests in turn, and the number of their nodes."""
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
        """Predict windows as one batch; if that fails, one by one, so that only the request with the problem fails."""
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


def _lattice(job: _Job, k: int) -> Lattice:
    assert job.reading is not None
    return job.reading.lattices[k]


def _alike(taken: Sequence[tuple[_Job, int]]) -> list[list[tuple[_Job, int]]]:
    """Group windows that have the same model and the same selection and can be batched together."""
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
