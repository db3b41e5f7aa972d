"""Several training processes: how many threads each has, and what is said of one that dies."""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import pytest
import tiny_run

from cige.errors import CigeError
from cige.reports import comparison


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="processors cannot be counted here")
def test_processes_share_the_processors_that_this_one_may_use(tmp_path, monkeypatch):
    given = []

    class Pool:
        def __init__(self, *_, **__):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def submit(self, *_):
            given.append(os.environ["OMP_NUM_THREADS"])
            (done := Future()).set_result({})
            return done

    monkeypatch.setattr(comparison, "process_pool", Pool)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)))
    assert list(comparison.run_all([tiny_run.tiny_recipe(n_epochs=1)], [1, 2], tmp_path, n_jobs=2)) == [{}, {}]
    assert given == ["3", "3"]


def test_a_process_that_died_is_told_in_one_sentence(tmp_path, monkeypatch):
    def died(*_):
        raise BrokenProcessPool("terminated abruptly")

    monkeypatch.setattr(comparison, "run_one", died)
    monkeypatch.setattr(comparison, "process_pool", ThreadPoolExecutor)
    with pytest.raises(CigeError, match=r"a process died while it trained in .* with fewer processes \(--jobs\)"):
        list(comparison.run_all([tiny_run.tiny_recipe(n_epochs=1)], [1], tmp_path, n_jobs=2))
