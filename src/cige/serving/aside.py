"""Aside: threads for work that is not batched, which stops by itself when nobody waits for it any more.

Explanations, and the preparation of long texts, take seconds. They have threads of their own, so that they delay no
batch. Python code takes turns every 5 ms, so other threads go on meanwhile.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, cast

from cige.tagging.prediction import PredictionModel

SHORT = 1_000  # characters; explanations of longer texts have another thread, so that short ones need not wait for them
LEAST_RATE = 500.0  # initial estimate of characters per second
M = TypeVar("M", bound=PredictionModel)
RATE_MEMORY = 0.8  # weight of the old estimate in the moving average


class OutOfTime(Exception):
    """The deadline of a request has passed, or its client has left."""


class Overloaded(Exception):
    """The queue is full; it should have room after `retry_after` seconds, at least 1."""

    def __init__(self, retry_after: int):
        super().__init__(f"too many requests wait; try again in {retry_after} s")
        self.retry_after = retry_after


class Stopping(Exception):
    """The server does not accept further requests."""

    def __init__(self) -> None:
        super().__init__("the server is stopping")


@dataclass(frozen=True)
class Watch:
    """What a request waits for, and until when.

    Attributes:
        deadline: a time of `time.monotonic`.
        future: the result, which its client may cancel.
    """

    deadline: float
    future: Future[Any] = field(default_factory=Future)

    @property
    def is_over(self) -> bool:
        """Whether no client is waiting for it any more."""
        return self.future.done() or time.monotonic() > self.deadline

    def check(self) -> None:
        """Raise OutOfTime if it is over; called in the midst of work, at least every few milliseconds of it."""
        if self.is_over:
            raise OutOfTime

    def watched(self, model: M) -> M:
        """The model, of which each use checks the time: `cige.tagging` and `cige.explain` use it once per batch."""
        return cast(M, _WatchedModel(model, self.check))

    def end(self, answer: Any) -> None:
        """Set the result, or the exception, if the client still waits."""
        if self.future.done() or not self.future.set_running_or_notify_cancel():
            return
        if isinstance(answer, BaseException):
            self.future.set_exception(answer)
        else:
            self.future.set_result(answer)


class _WatchedModel:
    def __init__(self, model: PredictionModel, check: Callable[[], None]):
        self.__dict__.update(_model=model, _check=check)

    def __getattr__(self, name: str) -> Any:
        self._check()
        return getattr(self._model, name)


class Lane:
    """One thread that runs tasks one after the other; those that nobody waits for any more are left out."""

    def __init__(self, name: str):
        self._tasks: deque[tuple[Watch, Callable[[], None]]] = deque()
        self._wake = threading.Condition()
        self._is_stopping = False
        self._now: Watch | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, watch: Watch, task: Callable[[], None]) -> None:
        """Run the task after those before it; it sets the result of `watch` itself, and an exception does too."""
        with self._wake:
            self._tasks.append((watch, task))
            self._wake.notify()

    @property
    def stuck_for(self) -> float:
        """Seconds for which the current task has gone on after its deadline; 0 if all is well."""
        now = self._now
        return 0.0 if now is None else max(0.0, time.monotonic() - now.deadline)

    def stop(self, *, timeout_s: float) -> None:
        """Run the tasks that wait, and end the thread."""
        with self._wake:
            self._is_stopping = True
            self._wake.notify()
        self._thread.join(timeout_s)

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def _run(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._tasks or self._is_stopping)
                if not self._tasks:
                    return
                watch, task = self._tasks.popleft()
                self._now = watch
            try:
                task()
            except Exception as error:
                watch.end(error)
            finally:
                self._now = None
                del watch, task  # the texts of the last request would stay until the next one


class AsideWork(Protocol):
    """The task of a request that is not batched; `run` returns the result, and calls `watch.check` often."""

    @property
    def n_chars(self) -> int: ...

    def run(self, watch: Watch) -> Any: ...


@dataclass
class _Queue:
    """A thread, its requests with their numbers of characters, and how many it has read in how many seconds."""

    lane: Lane
    jobs: list[tuple[Watch, int]] = field(default_factory=list)
    read_chars: float = LEAST_RATE
    read_s: float = 1.0

    @property
    def n_chars(self) -> int:
        return sum(n for _, n in list(self.jobs))


class Aside:
    """Runs the requests that are not batched in two threads, one of them for long texts.

    Args:
        waiting_chars: maximum number of characters that wait per thread; one request counts as at most a quarter.
    """

    def __init__(self, *, waiting_chars: int):
        self._waiting_chars = waiting_chars
        self._queues = (_Queue(Lane("cige-explain")), _Queue(Lane("cige-explain-long")))
        self._lock = threading.Lock()
        self._is_stopping = False

    @property
    def n_jobs(self) -> int:
        """Number of requests that are waiting or being processed."""
        return sum(len(queue.jobs) for queue in self._queues)

    @property
    def n_chars(self) -> int:
        """Number of characters of these requests, each counted as at most a quarter of the queue."""
        return sum(queue.n_chars for queue in self._queues)

    @property
    def stuck_for(self) -> float:
        """Seconds for which a thread has gone on after a deadline."""
        return max(queue.lane.stuck_for for queue in self._queues)

    def submit(self, work: AsideWork, *, deadline: float) -> Future[Any]:
        """Submit a request; cancelling the future ends it soon.

        Raises:
            Overloaded: too much waits.
            Stopping: `stop` was called.
        """
        watch, queue = Watch(deadline), self._queues[work.n_chars > SHORT]
        size = max(1, min(work.n_chars, self._waiting_chars // 4))
        with self._lock:
            if self._is_stopping:
                raise Stopping
            if queue.n_chars + size > self._waiting_chars:
                queue.jobs = [(other, n) for other, n in queue.jobs if not other.is_over]
            if queue.jobs and queue.n_chars + size > self._waiting_chars:
                raise Overloaded(max(1, math.ceil(queue.n_chars * queue.read_s / queue.read_chars)))
            queue.jobs.append((watch, size))
        queue.lane.submit(watch, lambda: self._run(work, watch, queue))
        return watch.future

    def _run(self, work: AsideWork, watch: Watch, queue: _Queue) -> None:
        started = time.monotonic()
        answer: Any
        try:
            watch.check()
            answer = work.run(watch)
            queue.read_chars = RATE_MEMORY * queue.read_chars + max(1, work.n_chars)
            queue.read_s = max(1e-6, RATE_MEMORY * queue.read_s + time.monotonic() - started)
        except OutOfTime:
            watch.future.cancel()
            return
        except Exception as error:
            answer = error
        finally:
            with self._lock:
                queue.jobs = [job for job in queue.jobs if job[0] is not watch]
        watch.end(answer)

    def stop(self, *, timeout_s: float) -> None:
        """Stop accepting requests, process the waiting ones, and end the threads."""
        with self._lock:
            self._is_stopping = True
        for queue in self._queues:
            queue.lane.stop(timeout_s=timeout_s)

    def is_alive(self) -> bool:
        """Whether requests are being processed."""
        return all(queue.lane.is_alive() for queue in self._queues)
