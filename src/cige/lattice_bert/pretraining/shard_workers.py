"""Make shards in this process, in several processes, or in tasks of a Ray cluster."""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from cige.errors import CigeError
from cige.lattice_bert.pretraining.make_shard import ShardJob
from cige.lattice_bert.pretraining.shards import ShardEntry
from cige.lattice_bert.pretraining.units import Unit

Workers = Callable[[ShardJob, Iterator[Unit], int], Iterator[ShardEntry]]


def in_processes(job: ShardJob, units: Iterator[Unit], n_processes: int) -> Iterator[ShardEntry]:
    """Yield the entry of each shard as it is finished, in any order; with one process, in this one.

    Raises:
        CigeError: see ShardJob.make; or a process died.
    """
    if n_processes == 1:
        yield from map(job.make, units)
        return
    running: set[Future[ShardEntry]] = set()
    # Spawned, not forked: the caller may have threads (torch), which a fork would break.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(n_processes, mp_context=context) as pool:
        try:
            for unit in units:
                running.add(pool.submit(job.make, unit))
                if len(running) > 2 * n_processes:  # limits how far compressed files are decompressed ahead
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    yield from [future.result() for future in done]
            yield from [future.result() for future in running]
        except BrokenProcessPool as reason:
            raise CigeError(
                f"a process died while it made a shard in {job.folder} ({reason}); most often memory ran out. Finished "
                "shards are kept: run the same command again, with fewer processes or a smaller shard size"
            ) from reason
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def on_ray(job: ShardJob, units: Iterator[Unit], n_tasks: int) -> Iterator[ShardEntry]:
    """The same with up to `n_tasks` tasks of Ray, each on one core of any node; a task whose worker dies runs again.

    Corpus and output must be on storage that all nodes share. The current Ray session is used, or that of RAY_ADDRESS,
    or a new local one.

    Raises:
        CigeError: see ShardJob.make; or Ray is not installed.
    """
    try:
        import ray
    except ImportError as reason:
        raise CigeError(f"engine 'ray' needs Ray ({reason}); pip install 'cige[ray]'") from reason
    task, shared = ray.remote(num_cpus=1)(_make), ray.put(job)
    running: deque[Any] = deque()
    try:
        for unit in units:
            running.append(task.remote(shared, unit))
            if len(running) >= n_tasks:
                done, rest = ray.wait(list(running), num_returns=1)
                running = deque(rest)
                yield ray.get(done[0])
        while running:
            yield ray.get(running.popleft())
    except ray.exceptions.RayTaskError as error:
        raise (error.cause if isinstance(error.cause, CigeError) else error) from error


def _make(job: ShardJob, unit: Unit) -> ShardEntry:
    return job.make(unit)


ENGINES: dict[str, Workers] = {"local": in_processes, "ray": on_ray}
