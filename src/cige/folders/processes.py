"""Processes that work for this one, and end with it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from threading import Thread
from typing import NoReturn

from cige.errors import show_warning
from cige.folders.atomic import undo_all

GRACE = 1.0  # seconds in which a process that is stopped may take away what it was writing


@contextmanager
def process_pool(n_processes: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of processes, in which what was submitted ends before the block does.

    If the block is left by an exception, such as Ctrl-C or the error of one task, all tasks are stopped at once, those
    that run too, as if the machine had lost power, save that nothing remains of files that are being written. The same
    happens if Ctrl-C comes while the block waits for them at its end, or if this process is killed. A pool by itself
    goes on with what was submitted until nothing is left.

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
        until = time.monotonic() + GRACE
        for process in ours:
            process.join(max(0.0, until - time.monotonic()))
            process.kill()
            process.join()
        raise


@contextmanager
def child_environment(values: Mapping[str, str]) -> Iterator[None]:
    """A context that sets environment variables for the processes that are started within it."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _begin(is_command: bool) -> None:
    """Prepare a process of the pool: it leaves Ctrl-C, which a terminal sends to it too, to its parent, and what it
    has begun to write does not remain if it is stopped."""
    if is_command:
        warnings.showwarning = show_warning
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, partial(_end, os.getpid()))
    Thread(target=_end_with_parent, args=(os.getpid(),), daemon=True).start()


def _end_with_parent(own: int) -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    _end(own)


def _end(own: int, *_: object) -> NoReturn:
    if os.getpid() == own:  # and not a fork of the process
        undo_all()
    os._exit(1)
