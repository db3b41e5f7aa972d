"""Batcher: one thread predicts the windows of all waiting requests, in batches of a limited number of nodes.

A second thread prepares long texts and makes their responses, which takes seconds.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from cige.lattice.lattice import Lattice
from cige.serving.aside import LEAST_RATE, RATE_MEMORY, Lane, OutOfTime, Overloaded, Stopping, Watch
from cige.serving.work import EntitiesReading, EntitiesWork
from cige.tagging.prediction import ScoredSpan, predict_spans

NO_ROOM = 64  # if less than this fraction (1/64) of the queue is free, requests are refused before they are parsed
TURN = 512  # maximum number of characters of a request per batch, before it is the turn of other requests
BATCH_S = 0.1  # estimated seconds of a batch; words with rules or with labels of their own take ten times as long
SMALL = 8  # windows of a request that may be in one batch before it is known how long one of them takes
LONG = 4_096  # characters of a request that is prepared and answered by the second thread


@dataclass(eq=False)
class _Job:
    work: EntitiesWork
    watch: Watch
    is_aside: bool = False  # the second thread prepares or answers it, so nothing of it can be predicted
    reading: EntitiesReading | None = None
    spans: list[list[ScoredSpan]] = field(default_factory=list)
    n_taken: int = 0
    n_ended: int = 0  # passes
    node_s: float | None = None  # seconds per node, as its last batch took
    last_batch: int = -1  # number of the last batch with a window of it

    @property
    def n_ahead(self) -> int:
        """Maximum number of passes that have not ended."""
        return max(1, self.work.n_passes - self.n_ended)

    def begin(self, reading: EntitiesReading) -> None:
        """Start a pass over these windows."""
        self.reading, self.spans, self.n_taken = reading, [[] for _ in reading.lattices], 0

    @property
    def is_long(self) -> bool:
        return self.work.n_chars > LONG


class _Window(NamedTuple):
    """A window in a batch: the `number`-th of a request's current pass."""

    job: _Job
    reading: EntitiesReading
    number: int

    @property
    def lattice(self) -> Lattice:
        return self.reading.lattices[self.number]

    def goes_with(self, other: _Window) -> bool:
        """Whether both have the same model and the same selection, and can be predicted at once."""
        ours, theirs = self.reading, other.reading
        return ours is theirs or (ours.weights is theirs.weights and ours.selection == theirs.selection)


class Batcher:
    """Processes requests in one thread; the computation of a batch uses the threads of the model.

    A batch has at most `batch_nodes` nodes and takes an estimated BATCH_S at most, or has one window. It takes windows
    of the waiting requests in turn, so that a long text does not delay short ones. Requests that arrive while a batch
    is computed are in the next batch; the batcher never waits for a batch to fill up.

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
        self._n_batches = 0
        self._since: float | None = None  # when the current batch began
        self._lane = Lane("cige-long")
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

    @property
    def stuck_for(self) -> float:
        """Seconds since the current batch began, or since a deadline that the second thread has passed."""
        since = self._since
        return max(0.0 if since is None else time.monotonic() - since, self._lane.stuck_for)

    def submit(self, work: EntitiesWork, *, deadline: float) -> Future[Any]:
        """Submit a request; cancelling the future removes it before the next batch.

        Args:
            deadline: a time of `time.monotonic`; a request without a result by then is removed, and its future is
                cancelled.

        Raises:
            Overloaded: requests are waiting, and this one would exceed `waiting_chars`.
            Stopping: `stop` was called.
        """
        job = _Job(work, Watch(deadline))
        with self._wake:
            if self._is_stopping:
                raise Stopping
            if self._is_full(job):
                self._drop_what_is_over()
            if self._is_full(job):
                raise Overloaded(self._seconds())
            self._jobs.append(job)
            self._count(job, 1)
            if job.is_long:
                self._put_aside(job, lambda: self._prepared(job))
            self._wake.notify()
        return job.watch.future

    def stop(self, *, timeout_s: float) -> None:
        """Stop accepting requests, process the waiting ones, and end the thread."""
        with self._wake:
            self._is_stopping = True
            self._wake.notify()
        self._thread.join(timeout_s)
        self._lane.stop(timeout_s=timeout_s)

    def is_alive(self) -> bool:
        """Whether requests are being processed."""
        return self._thread.is_alive() and self._lane.is_alive()

    def _run(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: any(not job.is_aside for job in self._jobs) or self._is_over)
                self._drop_what_is_over()
                # Those that have waited longest go first, since a batch may have no room for a window of each.
                jobs = sorted((job for job in self._jobs if not job.is_aside), key=lambda job: job.last_batch)
                if self._is_over:
                    return
            started = self._since = time.monotonic()
            n_chars = self._read_batch(jobs)
            self._since = None
            del jobs  # their texts would stay until the next batch
            if n_chars:
                chars, seconds = self._read or (0.0, 0.0)
                self._read = (RATE_MEMORY * chars + n_chars, RATE_MEMORY * seconds + time.monotonic() - started)

    @property
    def _is_over(self) -> bool:
        return self._is_stopping and not self._jobs

    def _put_aside(self, job: _Job, step: Callable[[], object]) -> None:
        """Let the second thread do a step of a long request; `_wake` is held."""
        job.is_aside = True

        def task() -> None:
            try:
                step()
            finally:
                with self._wake:
                    job.is_aside = False
                    self._wake.notify()

        self._lane.submit(job.watch, task)

    def _drop_what_is_over(self) -> None:
        for job in [job for job in self._jobs if job.watch.is_over]:
            self._leave(job)
            job.watch.future.cancel()

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
        if not self._jobs:
            return False
        if job.is_long:  # long requests leave a quarter of the queue to others
            n_long = sum(self._weight(other) for other in self._jobs if other.is_long)
            if n_long + self._weight(job) > self._waiting_chars * 3 // 4:
                return True
        return self._load + self._weight(job) > self._waiting_chars

    def _read_batch(self, jobs: Sequence[_Job]) -> int:
        """Process one batch and answer the requests that end with it; returns the number of characters processed."""
        taken, n_nodes = self._take(jobs)
        self._n_batches += 1
        started, n_chars = time.monotonic(), 0
        for group in _alike(taken):
            n_chars += sum(window.lattice.n_chars for window in group)
            self._read_group(group)
        if taken:
            self._observe(len(taken), n_nodes, time.monotonic() - started)
        for job in jobs:
            reading = job.reading
            if reading is None or job.watch.is_over or job.n_taken < len(reading.lattices):
                continue
            if job.is_long:
                with self._wake:
                    self._put_aside(job, partial(self._go_on, job, reading))
            else:
                self._go_on(job, reading)
        return n_chars

    def _go_on(self, job: _Job, reading: EntitiesReading) -> None:
        """Set the result of a request whose windows have all been processed, or start its next pass."""
        check = job.watch.check
        try:
            further = reading.further(job.spans, check)
            answer: Any = None if further is not None else reading.answer(job.spans, check)
        except Exception as error:
            further, answer = None, error
        if further is None:
            self._end(job, answer)
        else:
            with self._wake:
                if job in self._jobs:  # the thread of another request may have left it out meanwhile
                    self._count(job, -1)
                    job.n_ended += 1
                    self._count(job, 1)
            job.begin(further)

    def _take(self, jobs: Sequence[_Job]) -> tuple[list[_Window], int]:
        """The windows of the next batch, taken from the requests in turn, and the number of their nodes."""
        taken: list[_Window] = []
        n_nodes, seconds, left = 0, 0.0, deque(jobs)
        while left:
            job = left.popleft()
            reading = self._prepared(job)
            if reading is None or job.n_taken == len(reading.lattices):
                continue
            window = _Window(job, reading, job.n_taken)
            size = window.lattice.n_nodes
            took = size * (job.node_s or 0.0)
            if taken and (n_nodes + size > self._batch_nodes or seconds + took > BATCH_S):
                break
            taken.append(window)
            n_nodes += size
            seconds += took
            job.n_taken += 1
            job.last_batch = self._n_batches
            if job.node_s is not None or len(reading.lattices) <= SMALL:
                left.append(job)
        return taken, n_nodes

    def _prepared(self, job: _Job) -> EntitiesReading | None:
        if job.reading is None and not job.watch.is_over:
            try:
                job.begin(job.work.prepare(job.watch.check))
            except Exception as error:
                self._end(job, error)
        return job.reading

    def _read_group(self, group: Sequence[_Window]) -> None:
        """Predict windows as one batch; if that fails, one by one, so that only the request with the problem fails."""
        started, lattices = time.monotonic(), [window.lattice for window in group]
        ner, selection = group[0].reading.ner, group[0].reading.selection
        try:
            of_lattices = predict_spans(ner.model, lattices, selection, batch_size=len(group))
        except Exception as error:
            if len(group) == 1:
                self._end(group[0].job, error)
                return
            for window in group:
                if not window.job.watch.future.done():
                    self._read_group([window])
            return
        node_s = (time.monotonic() - started) / max(1, sum(lattice.n_nodes for lattice in lattices))
        for window, spans in zip(group, of_lattices, strict=True):
            window.job.spans[window.number], window.job.node_s = spans, node_s

    def _end(self, job: _Job, answer: Any) -> None:
        with self._wake:
            if job in self._jobs:
                self._leave(job)
            self._wake.notify()
        if isinstance(answer, OutOfTime):
            job.watch.future.cancel()
        else:
            job.watch.end(answer)


def _alike(taken: Sequence[_Window]) -> list[list[_Window]]:
    """Group the windows that can be predicted at once."""
    groups: list[list[_Window]] = []
    for window in taken:
        group = next((group for group in groups if group[0].goes_with(window)), None)
        if group is None:
            groups.append([window])
        else:
            group.append(window)
    return groups
