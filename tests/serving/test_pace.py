"""Pace: when requests are refused, by what they waited, how late the loop is and what waits before them."""

import asyncio
import time
from types import SimpleNamespace

import pytest

from cige.serving import pace as module
from cige.serving.pace import FEW, RECENTLY_S, Pace


@pytest.fixture
def clock():
    return SimpleNamespace(now=100.0)


@pytest.fixture
def pace(clock):
    made = Pace(0.2, clock=lambda: clock.now)
    made.queue = SimpleNamespace(busy_for=0, wait_s=0.0)
    return made


def in_loop(test):
    """Run the test where there is an event loop; timers that it leaves end with the loop."""

    async def main():
        test()

    asyncio.run(main())


def take(pace, n=FEW):
    for _ in range(n):
        pace.begin()


def test_what_the_queue_refuses_is_refused(pace):
    def test():
        assert pace.refuse_for() == 0
        pace.queue.busy_for = 3
        assert pace.refuse_for() == 3
        pace.queue = None
        assert pace.refuse_for() == 0

    in_loop(test)


@pytest.mark.parametrize(("waited", "before", "seconds"), [(0.1, 0.0, 0), (0.0, 0.19, 0), (0.1, 0.15, 1), (1.7, 0, 2)])
def test_the_wait_so_far_and_the_wait_to_come_count_together(pace, clock, waited, before, seconds):
    def test():
        take(pace)
        pace.queue.wait_s = before
        assert pace.refuse_for(clock.now - waited) == seconds

    in_loop(test)


def test_a_few_are_taken_however_long_they_waited_unless_others_were_refused(pace, clock):
    def test():
        take(pace, FEW - 1)
        assert pace.refuse_for(clock.now - 5) == 0
        pace.begin()
        assert pace.refuse_for(clock.now - 5) == 5
        for _ in range(FEW):
            pace.end()
        assert pace.n_taken == 0 and pace.refuse_for(clock.now - 5) == 5
        clock.now += RECENTLY_S + 0.1
        assert pace.refuse_for(clock.now - 5) == 0

    in_loop(test)


def test_a_loop_that_stands_still_refuses_until_it_runs_again(monkeypatch):
    made = Pace(0.05)
    made.queue = SimpleNamespace(busy_for=0, wait_s=0.0)
    take(made)

    async def main():
        assert made.refuse_for() == 0
        time.sleep(0.2)
        assert made.refuse_for() == 1, "the timer is overdue"
        await asyncio.sleep(0)
        while made.refuse_for():  # until the timer fires in time again
            await asyncio.sleep(module.BEAT_S)

    asyncio.run(main())


def test_an_idle_loop_is_not_woken():
    made = Pace(0.05)
    made.queue = SimpleNamespace(busy_for=0, wait_s=0.0)

    async def main():
        made.refuse_for()
        assert made._due is not None
        while made._due is not None:
            await asyncio.sleep(module.BEAT_S)

    asyncio.run(main())
