"""Processes of their own for training: to be killed, or to share a run. PyTorch is imported once for all of them.

A server that imports it and starts no thread forks itself for each process, which takes milliseconds; a new interpreter
computes for five seconds until PyTorch is ready.
Elsewhere than on Linux a fork may not use what PyTorch computes with, and each process is a new interpreter.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from multiprocessing import forkserver
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from typing import Any

import inherited_path
import pytest

# What training imports, some of it in its first step only; what cannot be imported is left to the processes.
IMPORTED = ["torch._dynamo", "torch.distributed.fsdp", "torch.utils.tensorboard", "cige.training.train"]
TIMEOUT_S = 120.0


@cache
def _context() -> BaseContext:
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in inherited_path.environment(OMP_NUM_THREADS="1").items():
            patch.setenv(name, value)
        forkserver.ensure_running()
    return context


def start(function: Callable[..., Any], *arguments: Any, variables: Mapping[str, str] | None = None) -> BaseProcess:
    """Start a process that calls a function of a module.

    Args:
        variables: of its environment, besides those of this process.
    """
    process = _context().Process(target=_call, args=(dict(os.environ) | dict(variables or {}), function, arguments))
    process.start()
    return process


def _call(environment: dict[str, str], function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    os.environ.update(environment)
    function(*arguments)


def exit_code(process: BaseProcess) -> int:
    """How a process ended, once it has: a negative number is a signal. One that takes too long is killed."""
    process.join(TIMEOUT_S)
    if process.is_alive():
        process.kill()
        process.join()
    return process.exitcode


def exit_codes(n: int, function: Callable[..., Any], *arguments: Any) -> list[int]:
    """How `n` processes that share a run ended; when the last one dies the others are killed, as launchers do."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    shared = {"WORLD_SIZE": str(n), "LOCAL_WORLD_SIZE": str(n), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    processes = [
        start(function, *arguments, variables=shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)})
        for rank in range(n)
    ]
    if exit_code(processes[-1]):
        for process in processes:
            process.kill()
    return [exit_code(process) for process in processes]


def restarts(n: int, function: Callable[..., Any], *arguments: Any) -> list[int]:
    """How often each of `n` processes was started again by what torchrun runs, until all of them ended well.

    When one dies, that starts all of them again, once. It takes over no signals of this process from another thread.
    """
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=n,
        max_restarts=1,
        monitor_interval=0.1,
        start_method=_context().get_start_method(),
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        run_id="test",
    )
    with ThreadPoolExecutor(1) as thread:
        found = thread.submit(elastic_launch(config, _counted), function, *arguments).result(TIMEOUT_S)
    return [found[rank] for rank in range(n)]


def _counted(function: Callable[..., Any], *arguments: Any) -> int:
    function(*arguments)
    return int(os.environ["TORCHELASTIC_RESTART_COUNT"])
