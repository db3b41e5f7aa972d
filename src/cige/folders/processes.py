"""Processes that work for this one, and end with it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from threading import Thread

from cige.errors import show_warning


@contextmanager
def process_pool(n_processes: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of processes, in which what was submitted ends before the block does.

    If the block is left by an exception, such as Ctrl-C or the error of one task, all tasks are stopped at once, those
    that run too, as if the machine had lost power. The same happens if Ctrl-C comes while the block waits for them at
    its end, or if this process is killed. A pool by itself goes on with what was submitted until nothing is left.

    The processes are spawned, not forked: the caller may have threads (torch), which a fork would break. They print
    warnings as commands do if this one does.
    """
    is_command = warnings.showwarning is show_warning
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(n_processes, mp_context=context, initializer=_begin, initargs=(is_command,))
    processes = pool._processes  # which the pool forgets when it is shut down
    # Before Python 3.11.5, a task that is being sent to a process that ended would be waited for without end.
    pool._call_queue.cancel_join_thread()  # type: ignore[attr-defined]
    try:
        yield pool
        pool.shutdown()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        ours = list(processes.values())
        for process in ours:
            process.terminate()
        for process in ours:
            process.join()
        raise


def _begin(is_command: bool) -> None:
    """Prepare a process of the pool: it leaves Ctrl-C, which a terminal sends to it too, to its parent."""
    if is_command:
        warnings.showwarning = show_warning
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
