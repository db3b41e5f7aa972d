"""Batcher: what waits, what is refused, what leaves, and that one bad request hurts no other."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from cige.lattice.lattice import Lattice
from cige.serving import batcher as module
from cige.serving.batcher import Batcher, Overloaded, Stopping
from cige.tagging.prediction import ScoredSpan
from cige.tagging.selection import Selection

SOON = 60.0  # seconds; nothing in these tests takes as long


def lattice(text):
    import numpy as np

    return Lattice(text=text, words=np.zeros((0, 3), np.int32), n_base=0)


@dataclass
class FakeWork:
    """A request whose windows are strings; it is answered with the lengths that were found in the last of them.

    Once they were read, `meanwhile` happens, and the windows of `then` are to be read.
    """

    windows: tuple[str, ...]
    selection: Selection = field(default_factory=lambda: Selection({}))
    fails: bool = False
    prepared: int = 0
    weights: object = None
    then: tuple[str, ...] = ()
    meanwhile: Callable[[], object] = lambda: None

    @property
    def n_chars(self):
        return sum(map(len, self.windows))

    @property
    def n_passes(self):
        return 2 if self.then else 1

    def prepare(self, check):
        self.prepared += 1
        if self.fails:
            raise ValueError("cannot be prepared")
        return self._reading(self.windows, self.then)

    def _reading(self, windows, then):
        def further(spans, check):
            self.meanwhile()
            return self._reading(then, ()) if then else None

        return SimpleNamespace(
            ner=SimpleNamespace(model=self.weights),
            weights=self.weights,
            selection=self.selection,
            lattices=[lattice(text) for text in windows],
            further=further,
            answer=lambda spans, check: [span.end for found in spans for span in found],
        )


@pytest.fixture
def reading(monkeypatch):
    """What is read at once, and a gate: nothing is read until it is set."""
    state = SimpleNamespace(batches=[], gate=threading.Event(), entered=threading.Event())

    def predict(model, lattices, selection, *, batch_size):
        state.entered.set()
        assert state.gate.wait(SOON)
        texts = [x.text for x in lattices]
        state.batches.append(texts)
        if any("坏" in text for text in texts):
            raise MemoryError("坏")
        return [[ScoredSpan(0, len(text), "X", 1.0)] for text in texts]

    monkeypatch.setattr(module, "predict_spans", predict)
    return state


@pytest.fixture
def batcher(reading):
    made = Batcher(batch_nodes=10, waiting_chars=20)
    yield made
    reading.gate.set()
    made.stop(timeout_s=SOON)
    assert not made.is_alive()


def submit(batcher, *windows, seconds=SOON, **options):
    work = FakeWork(windows, **options)
    return work, batcher.submit(work, deadline=time.monotonic() + seconds)


def hold(batcher, reading):
    """Occupy the thread with a request, so that whatever comes next waits."""
    _, future = submit(batcher, "一")
    assert reading.entered.wait(SOON)
    return future


def test_windows_of_all_requests_are_read_together_in_turns_within_the_budget(batcher, reading):
    first = hold(batcher, reading)
    _, long = submit(batcher, "甲甲甲甲", "乙乙乙乙", "丙丙丙丙")
    _, short = submit(batcher, "丁")
    reading.gate.set()
    assert first.result(SOON) == [1]
    assert long.result(SOON) == [4, 4, 4] and short.result(SOON) == [1]
    assert reading.batches[1:] == [["甲甲甲甲", "丁", "乙乙乙乙"], ["丙丙丙丙"]]


def test_a_short_request_is_in_the_next_batch_though_more_long_ones_wait_than_a_batch_has_room_for(batcher, reading):
    hold(batcher, reading)
    long = [submit(batcher, *["甲" * 6] * 5)[1] for _ in range(3)]
    short = submit(batcher, "丁")[1]
    reading.gate.set()
    assert short.result(SOON) == [1] and [one.result(SOON) for one in long] == [[6] * 5] * 3
    assert reading.batches[3] == ["甲" * 6, "丁"], "it goes before the second windows of the others"


def test_long_requests_leave_a_quarter_of_the_queue_to_short_ones(reading):
    batcher = Batcher(batch_nodes=10, waiting_chars=4_000)
    hold(batcher, reading)
    long = [submit(batcher, "甲" * 5_000)[1] for _ in range(3)]
    with pytest.raises(Overloaded):
        submit(batcher, "乙" * 5_000)
    short = submit(batcher, "丙" * 900)[1]
    for future in long:
        future.cancel()
    reading.gate.set()
    assert short.result(SOON) == [900]
    batcher.stop(timeout_s=SOON)


def test_a_window_over_the_budget_is_read_by_itself(batcher, reading):
    reading.gate.set()
    assert submit(batcher, "大" * 15, "小")[1].result(SOON) == [15, 1]
    assert [len(texts) for texts in reading.batches] == [1, 1]


def test_what_is_reported_differently_is_read_apart(batcher, reading):
    hold(batcher, reading)
    futures = [
        submit(batcher, text, selection=Selection({}, score))[1] for text, score in (("甲", 0), ("乙", 0.5), ("丙", 0))
    ]
    reading.gate.set()
    assert [future.result(SOON) for future in futures] == [[1], [1], [1]]
    assert reading.batches[1:] == [["甲", "丙"], ["乙"]]


def test_windows_of_different_models_are_read_apart(batcher, reading):
    hold(batcher, reading)
    one, other = object(), object()
    futures = [submit(batcher, text, weights=weights)[1] for text, weights in (("甲", one), ("乙", other), ("丙", one))]
    reading.gate.set()
    assert [future.result(SOON) for future in futures] == [[1], [1], [1]]
    assert reading.batches[1:] == [["甲", "丙"], ["乙"]]


def test_nothing_to_read_is_answered(batcher, reading):
    assert submit(batcher)[1].result(SOON) == []
    assert reading.batches == []


def test_too_much_that_waits_is_refused_and_room_that_is_made_is_used(batcher, reading):
    hold(batcher, reading)
    waiting = [submit(batcher, "甲" * n)[1] for n in (100, 5, 5, 4)]  # a long one counts for 5
    with pytest.raises(Overloaded, match="try again in 1 s") as full:
        submit(batcher, "乙")
    assert full.value.retry_after == 1 and batcher.n_chars == 115
    waiting[0].cancel()
    _, in_its_place = submit(batcher, "丙" * 19)
    reading.gate.set()
    assert in_its_place.result(SOON) == [19] and waiting[3].result(SOON) == [4]


def test_a_request_that_may_be_read_twice_counts_twice_until_the_first_pass_is_over(reading):
    batcher = Batcher(batch_nodes=2000, waiting_chars=6400)
    hold(batcher, reading)
    counted = []

    def note():
        counted.append((batcher._load, batcher._before_turn))

    twice = submit(batcher, "甲" * 600, then=("乙" * 600,), meanwhile=note)[1]
    note()
    once = submit(batcher, "丙" * 1200)[1]
    note()
    assert counted == [(1201, 1025), (2401, 1537)]  # of a turn, 512 characters, and one of the request held
    assert batcher.busy_for == 0 and batcher.n_chars == 1801
    again = submit(batcher, "丁" * 5000, then=("戊",))[1]
    assert batcher._load == 2401 + 1600  # a quarter of the queue
    again.cancel()
    reading.gate.set()
    assert twice.result(SOON) == [600] and once.result(SOON) == [1200]
    batcher.stop(timeout_s=SOON)
    assert (batcher._load, batcher._before_turn) == (0, 0)


def test_a_request_that_leaves_while_its_next_pass_is_prepared_no_longer_counts(reading):
    batcher = Batcher(batch_nodes=10, waiting_chars=20)
    hold(batcher, reading)
    work, future = submit(batcher, "甲甲", then=("乙",))

    def leave():
        future.cancel()
        with batcher._wake:
            batcher._drop_what_is_over()

    work.meanwhile = leave
    reading.gate.set()
    batcher.stop(timeout_s=SOON)
    assert (batcher._load, batcher._before_turn) == (0, 0)


@pytest.mark.parametrize(("then", "seconds"), [((), 1), (("乙",), 2)])
def test_retry_after_weighs_the_second_pass(reading, then, seconds):
    batcher = Batcher(batch_nodes=10, waiting_chars=2000)
    hold(batcher, reading)
    waiting = []
    with pytest.raises(Overloaded) as full:
        for _ in range(40):
            waiting.append(submit(batcher, "甲" * 90, then=then)[1])
    assert len(waiting) == (11 if then else 22)  # 1,999 characters, 90 or 180 each
    assert full.value.retry_after == 4  # at the speed that is assumed at first, 500 characters per second
    for future in waiting[3:]:
        future.cancel()
    batcher._drop_what_is_over()
    assert batcher._seconds() == seconds
    reading.gate.set()
    batcher.stop(timeout_s=SOON)


def test_it_says_when_there_is_no_room_for_anything(reading):
    batcher = Batcher(batch_nodes=10, waiting_chars=640)
    hold(batcher, reading)
    future = [submit(batcher, "甲" * n)[1] for n in (160, 160, 160, 149)][-1]
    assert batcher.busy_for == 0  # there is room for ten
    last = submit(batcher, "乙")[1]
    assert batcher.busy_for == 2  # seconds for 631 characters
    last.cancel()
    reading.gate.set()
    assert future.result(SOON)
    batcher.stop(timeout_s=SOON)
    assert batcher.busy_for == 0


def test_a_request_of_any_length_is_read_if_nothing_else_waits(batcher, reading):
    reading.gate.set()
    assert submit(batcher, "长" * 100)[1].result(SOON) == [100]


def test_a_cancelled_request_leaves_and_is_not_read(batcher, reading):
    hold(batcher, reading)
    work, cancelled = submit(batcher, "甲")
    _, kept = submit(batcher, "乙")
    assert cancelled.cancel()
    reading.gate.set()
    assert kept.result(SOON) == [1]
    assert work.prepared == 0 and reading.batches[1:] == [["乙"]]


def test_a_request_whose_deadline_is_over_leaves_and_is_not_read(batcher, reading):
    hold(batcher, reading)
    work, late = submit(batcher, "甲", seconds=-1)
    _, kept = submit(batcher, "乙")
    reading.gate.set()
    assert kept.result(SOON) == [1] and late.cancelled() and work.prepared == 0


def test_what_is_to_be_read_then_waits_for_its_turns_like_the_windows_before(batcher, reading):
    hold(batcher, reading)
    _, twice = submit(batcher, "甲甲甲甲", then=("乙乙乙", "丙丙丙丙"))
    _, once = submit(batcher, "丁" * 5, "戊戊")
    reading.gate.set()
    assert twice.result(SOON) == [3, 4] and once.result(SOON) == [5, 2]
    assert reading.batches[1:] == [["甲甲甲甲", "丁" * 5], ["乙乙乙", "戊戊", "丙丙丙丙"]]
    assert batcher.n_jobs == 0


@pytest.mark.parametrize("why", ["cancelled", "late"])
def test_nothing_more_is_read_of_a_request_that_nobody_waits_for_any_more(batcher, reading, why):
    hold(batcher, reading)
    work, over = submit(batcher, "甲", then=("乙",), seconds=SOON if why == "cancelled" else 0.05)
    work.meanwhile = over.cancel if why == "cancelled" else lambda: time.sleep(0.06)
    _, kept = submit(batcher, "丙", "丁" * 10)
    reading.gate.set()
    assert kept.result(SOON) == [1, 10] and over.cancelled()
    assert "乙" not in [text for texts in reading.batches for text in texts] and batcher.n_jobs == 0


def test_a_request_of_which_no_more_can_be_read_fails_alone(batcher, reading):
    hold(batcher, reading)

    def fail():
        raise ValueError("no more")

    _, failing = submit(batcher, "甲", then=("乙",), meanwhile=fail)
    _, bad = submit(batcher, "甲", then=("坏",))
    _, kept = submit(batcher, "丙", then=("丁丁",))
    reading.gate.set()
    assert kept.result(SOON) == [2]
    with pytest.raises(ValueError, match="no more"):
        failing.result(SOON)
    with pytest.raises(MemoryError):
        bad.result(SOON)


def test_a_request_that_cannot_be_read_fails_alone(batcher, reading):
    hold(batcher, reading)
    futures = [submit(batcher, text)[1] for text in ("甲", "坏", "乙")]
    unprepared = submit(batcher, "丙", fails=True)[1]
    reading.gate.set()
    assert futures[0].result(SOON) == [1] and futures[2].result(SOON) == [1]
    with pytest.raises(MemoryError):
        futures[1].result(SOON)
    with pytest.raises(ValueError, match="cannot be prepared"):
        unprepared.result(SOON)


def test_stopping_answers_what_waits_and_takes_no_more(reading):
    batcher = Batcher(batch_nodes=10, waiting_chars=20)
    first = hold(batcher, reading)
    _, waiting = submit(batcher, "甲")
    stopping = threading.Thread(target=batcher.stop, kwargs={"timeout_s": SOON})
    stopping.start()
    while not batcher._is_stopping:
        time.sleep(0.001)
    with pytest.raises(Stopping):
        submit(batcher, "乙")
    reading.gate.set()
    stopping.join(SOON)
    assert first.result(0) == [1] and waiting.result(0) == [1] and not batcher.is_alive()
