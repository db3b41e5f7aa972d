"""Aside: work that stops when nobody waits for it, threads that do not wait for one another, and what is stuck."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from cige.serving.aside import SHORT, Aside, Lane, OutOfTime, Overloaded, Stopping, Watch

SOON = 60.0


@dataclass
class FakeWork:
    """Work that waits for `gate`, looking at the time, and is answered with its number of characters."""

    n_chars: int
    gate: threading.Event = field(default_factory=threading.Event)
    entered: threading.Event = field(default_factory=threading.Event)
    left: threading.Event = field(default_factory=threading.Event)
    fails: bool = False

    def run(self, watch):
        self.entered.set()
        try:
            while not self.gate.wait(0.001):
                watch.check()
            if self.fails:
                raise ValueError("cannot be explained")
            return self.n_chars
        finally:
            self.left.set()


@pytest.fixture
def aside():
    made = Aside(waiting_chars=2_000)
    yield made
    made.stop(timeout_s=SOON)
    assert not made.is_alive()


def submit(aside, n_chars, *, seconds=SOON, **options):
    work = FakeWork(n_chars, **options)
    return work, aside.submit(work, deadline=time.monotonic() + seconds)


def test_a_short_request_does_not_wait_for_a_long_one(aside):
    long, long_future = submit(aside, SHORT + 1)
    assert long.entered.wait(SOON)
    short, future = submit(aside, SHORT)
    short.gate.set()
    assert future.result(SOON) == SHORT and not long_future.done() and aside.n_jobs == 1
    long.gate.set()
    assert long_future.result(SOON) == SHORT + 1


@pytest.mark.parametrize("why", ["cancelled", "late"])
def test_work_that_nobody_waits_for_stops_by_itself_and_the_next_is_done(aside, why):
    work, future = submit(aside, 5, seconds=SOON if why == "cancelled" else 0.05)
    assert work.entered.wait(SOON)
    if why == "cancelled":
        assert future.cancel()
    assert work.left.wait(SOON) and not work.gate.is_set()
    after, answered = submit(aside, 6)
    after.gate.set()
    assert answered.result(SOON) == 6 and future.cancelled() and aside.n_jobs == 0


def test_what_is_late_before_its_turn_is_not_begun(aside):
    first, _ = submit(aside, 5)
    assert first.entered.wait(SOON)
    late, future = submit(aside, 5, seconds=-1)
    first.gate.set()
    after, answered = submit(aside, 6)
    after.gate.set()
    assert answered.result(SOON) == 6 and future.cancelled() and not late.entered.is_set()


def test_too_much_that_waits_is_refused_and_room_that_is_made_is_used(aside):
    works = [submit(aside, 500) for _ in range(4)]
    with pytest.raises(Overloaded, match="try again in 4 s"):  # at 500 characters per second, as assumed at first
        submit(aside, 500)
    assert submit(aside, SHORT + 1)[1].cancel(), "the queue of long texts is another"
    works[3][1].cancel()
    _, in_its_place = submit(aside, 500)
    assert in_its_place.cancel()
    for work, _ in works:
        work.gate.set()
    assert [future.result(SOON) for _, future in works[:3]] == [500] * 3


def test_an_error_is_that_of_the_request_alone(aside):
    bad, failed = submit(aside, 5, fails=True)
    good, future = submit(aside, 6)
    bad.gate.set()
    good.gate.set()
    with pytest.raises(ValueError, match="cannot be explained"):
        failed.result(SOON)
    assert future.result(SOON) == 6


def test_work_that_does_not_look_at_the_time_is_noticed():
    lane, gate, entered = Lane("test"), threading.Event(), threading.Event()
    watch = Watch(time.monotonic() - 5)
    lane.submit(watch, lambda: (entered.set(), gate.wait(SOON)))
    assert entered.wait(SOON) and 5 <= lane.stuck_for < 5 + SOON
    gate.set()
    lane.stop(timeout_s=SOON)
    assert lane.stuck_for == 0 and not lane.is_alive()


def test_each_use_of_a_watched_model_looks_at_the_time():
    model = SimpleNamespace(emissions=lambda lattices: "read", labels=["X"])
    watch = Watch(time.monotonic() + SOON)
    watched = watch.watched(model)
    assert watched.emissions([]) == "read" and watched.labels == ["X"]
    assert getattr(watched, "find_spans", None) is None
    watch.future.cancel()
    for name in ("emissions", "labels", "find_spans"):
        with pytest.raises(OutOfTime):
            getattr(watched, name, None)


def test_stopping_answers_what_waits_and_takes_no_more():
    aside = Aside(waiting_chars=20)
    work, future = submit(aside, 5)
    stopping = threading.Thread(target=aside.stop, kwargs={"timeout_s": SOON})
    stopping.start()
    while not aside._is_stopping:
        time.sleep(0.001)
    with pytest.raises(Stopping, match="the server is stopping"):
        submit(aside, 5)
    work.gate.set()
    stopping.join(SOON)
    assert future.result(0) == 5
