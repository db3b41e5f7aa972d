"""Pace: estimates whether the server can answer another request in time.

A request waits four times: in the operating system until the event loop reads it, in the event loop, in the batcher,
and again in the event loop with its response. The first two times are known from the request, the batcher estimates the
third, and the last is measured as the delay of a timer of the event loop.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cige.serving.batcher import Batcher

PACE, METRICS = "cige_pace", "cige_metrics"  # keys of the lifespan state of the app, for `door`
ARRIVED = "cige_arrived"  # key of a request's state: its time of arrival, by `time.monotonic`
ROUNDS = 2  # rounds of the event loop between a result and sending the response
BEAT_S = 0.01  # interval of the timer while requests arrive
FEW = 8  # this many requests are always accepted, since so few requests cannot be the cause of the delay
RECENTLY_S = 1.0  # unless requests were refused this recently, which shows that requests are the cause


class Pace:
    """Decides whether requests are refused. All methods are called in the thread of the event loop.

    Args:
        answer_s: maximum expected time from the arrival of a request to its response, in seconds.
        clock: a monotonic clock, in seconds.

    Attributes:
        queue: the queue of accepted requests; None while no requests are processed.
        n_taken: number of accepted requests without a response.
    """

    def __init__(self, answer_s: float, *, clock: Callable[[], float] = time.monotonic):
        self.queue: Batcher | None = None
        self.n_taken = 0
        self._answer_s, self._clock = answer_s, clock
        self._due: float | None = None  # when the timer should fire; None if there is no timer
        self._lateness = 0.0  # delay of the timer when it last fired
        self._was_asked = False
        self._refused = -math.inf  # time of the last refusal

    def refuse_for(self, arrived: float | None = None) -> int:
        """The seconds after which a request should be tried again, or 0 if it is accepted.

        Args:
            arrived: its time of arrival; None means now.
        """
        if self.queue is None:
            return 0
        now = self._clock()
        late = ROUNDS * self._late_by(now) + (0.0 if arrived is None else now - arrived)
        seconds = self.queue.busy_for
        if not seconds and (self.n_taken >= FEW or now - self._refused < RECENTLY_S):
            expected = late + self.queue.wait_s
            seconds = max(1, math.ceil(expected)) if expected > self._answer_s else 0
        if seconds:
            self._refused = now
        return seconds

    def begin(self) -> None:
        """Count an accepted request; must be followed by `end`."""
        self.n_taken += 1

    def end(self) -> None:
        """An accepted request was answered, or its client disconnected."""
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
        if self._was_asked:  # no timer on an idle server
            self._was_asked = False
            self._set_timer()
