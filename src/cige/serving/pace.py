"""Pace: whether a server can answer one more request soon.

A request waits in four places: in the operating system until the event loop reads it, in the loop until its turn comes,
in the batcher, and in the loop again with its answer. The first two are told with the request, the batcher knows how
long its own queue takes, and the last is as long as a timer of the loop is late.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Protocol

PACE, METRICS = "cige_pace", "cige_metrics"  # names in the state of the app's lifespan, for `door`
ARRIVED = "cige_arrived"  # name in the state of a request: when it came, as `time.monotonic` counts
ROUNDS = 2  # of the loop between an answer and its sending
BEAT_S = 0.01  # how often lateness is measured while requests come
FEW = 8  # so many requests are taken however long they wait: something else than they must keep the machine busy
RECENTLY_S = 1.0  # unless requests were refused so lately: then requests are what keeps it busy


class Queue(Protocol):
    """What the requests that were taken wait in.

    Attributes:
        busy_for: in how many seconds there is room, 0 where there is some now.
        wait_s: seconds until one more request would have its turn.
    """

    @property
    def busy_for(self) -> int: ...

    @property
    def wait_s(self) -> float: ...


class Pace:
    """Says when requests should be refused. All methods are called in the event loop's thread.

    Args:
        answer_s: seconds within which a request must be expected to be answered, from when it came.
        clock: seconds that only grow.

    Attributes:
        queue: where the requests that were taken wait; None while none are read.
        n_taken: requests that were taken and not yet answered.
    """

    def __init__(self, answer_s: float, *, clock: Callable[[], float] = time.monotonic):
        self.queue: Queue | None = None
        self.n_taken = 0
        self._answer_s, self._clock = answer_s, clock
        self._due: float | None = None  # when the timer should fire; None while there is none
        self._lateness = 0.0  # of the timer when it last fired
        self._was_asked = False
        self._refused = -math.inf  # when a request was last refused

    def refuse_for(self, arrived: float | None = None) -> int:
        """In how many seconds a request should be tried again, 0 where it may be taken now.

        Args:
            arrived: when it came; None for now.
        """
        now = self._clock()
        seconds = 0
        if self.queue is not None:
            late = ROUNDS * self._late_by(now) + (0.0 if arrived is None else now - arrived)
            seconds = self.queue.busy_for
            if not seconds and (self.n_taken >= FEW or now - self._refused < RECENTLY_S):
                expected = late + self.queue.wait_s
                seconds = max(1, math.ceil(expected)) if expected > self._answer_s else 0
            if seconds:
                self._refused = now
        return seconds

    def begin(self) -> None:
        """A request was taken; `end` must follow."""
        self.n_taken += 1

    def end(self) -> None:
        """A request that was taken is answered, or nobody waits for it any more."""
        self.n_taken -= 1

    def _late_by(self, now: float) -> float:
        self._was_asked = True
        if self._due is None:
            self._set_timer()
            return 0.0
        return max(self._lateness, now - self._due)

    def _set_timer(self) -> None:
        self._due = self._clock() + BEAT_S
        asyncio.get_running_loop().call_later(BEAT_S, self._beat)

    def _beat(self) -> None:
        assert self._due is not None
        self._lateness = max(0.0, self._clock() - self._due)
        self._due = None
        if self._was_asked:  # an idle server is not woken
            self._was_asked = False
            self._set_timer()
