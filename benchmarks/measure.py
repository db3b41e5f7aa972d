"""What benchmarks share: ways that take turns, fresh processes, medians, the machine, tables of rows and JSON files.

A shared machine gives a process more or less of a core from one second to the next. So the ways that are compared take
turns, the median of each counts, and beside the clock stand processor seconds, which other processes hardly change.
"""

import json
import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from unittest import mock

from rich import box
from rich.console import Console
from rich.table import Table

from cige.folders.atomic import write_atomically
from cige.folders.processes import process_pool
from cige.json_text import to_json

PACKAGES = ("cige", "numpy", "torch", "onnxruntime")


class Timing(NamedTuple):
    """Seconds of each round on the clock, and of the processor in all threads together; their medians."""

    clocks: tuple[float, ...]
    processors: tuple[float, ...]

    @property
    def clock(self) -> float:
        return median(self.clocks)

    @property
    def processor(self) -> float:
        return median(self.processors)

    def ratios(self, other: "Timing", *, clock: bool = False) -> list[float]:
        """How many times the seconds of the other way it took in each round; what else ran slowed both."""
        ours, theirs = (t.clocks if clock else t.processors for t in (self, other))
        return [a / b for a, b in zip(ours, theirs, strict=True)]


def in_turns(
    ways: Mapping[Any, Callable[[], Any]],
    *,
    n_rounds: int,
    device: str = "cpu",
    processors: Mapping[Any, Callable[[], float]] = {},
) -> dict[Any, Timing]:
    """Run each way once to warm up and then `n_rounds` times, turn by turn; a way ends when `device` has finished.

    Args:
        processors: for ways whose work is done by another process, the processor seconds that it has used so far.
    """
    taken: dict[Any, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(n_rounds + 1):
        for name, run in ways.items():
            used = processors.get(name, time.process_time)
            clock, processor = time.perf_counter(), used()
            run()
            finish(device)
            taken[name].append((time.perf_counter() - clock, used() - processor))
    return {name: Timing(*zip(*rounds[1:], strict=True)) for name, rounds in taken.items()}


def seconds_of(run: Callable[[], Any]) -> tuple[float, float]:
    """Of one call: (on the clock, of the processor)."""
    clock, processor = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - clock, time.process_time() - processor


def in_process(function: Callable[..., Any], *arguments: Any, **variables: str) -> Any:
    """What a function of a module returns in a fresh process of one thread, with some variables of the environment."""
    with mock.patch.dict(os.environ, {"OMP_NUM_THREADS": "1"} | variables), process_pool(1) as pool:
        return pool.submit(function, *arguments).result()


def megabytes(pid: int | str = "self", file: str = "status") -> dict[str, float]:
    """The sizes in /proc/PID/status (VmHWM: the most that was resident) or in smaps_rollup."""
    lines = Path(f"/proc/{pid}/{file}").read_text(encoding="utf-8").splitlines()
    sizes = (line.partition(":") for line in lines if line.endswith(" kB"))
    return {name: int(value.split()[0]) / 1024 for name, _, value in sizes}


def finish(device: str) -> None:
    """Wait until a GPU has done what it was given."""
    if device.startswith("cuda"):
        import torch

        torch.cuda.synchronize()


def use_threads(n_threads: int) -> None:
    """Threads of PyTorch from now on, and of ONNX Runtime for models that are loaded from now on."""
    import torch

    os.environ["OMP_NUM_THREADS"] = str(n_threads)
    torch.set_num_threads(n_threads)


def environment(*, threads: int, n_rounds: int, device: str = "cpu") -> dict[str, Any]:
    """Machine, versions, threads and rounds, as JSON can hold them."""
    facts: dict[str, Any] = {"machine": platform.processor() or platform.machine(), "device": device}
    if device.startswith("cuda"):
        import torch

        facts["device"] = torch.cuda.get_device_name(device)
    facts |= {"n_cores": os.cpu_count(), "threads": threads, "rounds": n_rounds, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            facts[name] = version(name)
        except PackageNotFoundError:
            continue
    return facts


def report(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows as a table; the keys of the first are its head."""
    table = Table(box=box.SIMPLE_HEAD)
    for name in rows[0]:
        table.add_column(name.replace("_", " "), justify="left" if isinstance(rows[0][name], str) else "right")
    for row in rows:
        table.add_row(*(_shown(row.get(name)) for name in rows[0]))
    Console(width=None if os.isatty(1) else 140, highlight=False).print(f"\n{title}", table)


def line(row: Mapping[str, Any]) -> str:
    """A row in one line, while others are still measured."""
    return ", ".join(f"{name.replace('_', ' ')} {_shown(value)}" for name, value in row.items())


def told(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """All rows, each printed when it is there."""
    found = []
    for row in rows:
        found.append(row)
        print(line(row), flush=True)
    return found


def write(result: Mapping[str, Any], path: str | Path | None) -> None:
    """Write a result as JSON, if a file was asked for; floats to four figures. An old file is replaced whole."""
    if path is not None:
        write_atomically(path, to_json(_rounded(result), indent=1) + "\n")


def earlier(path: Path | None) -> dict[str, Any]:
    """The result that an earlier run wrote to a file, without its machine and versions; empty if there is none."""
    if path is None or not path.is_file():
        return {}
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    result.pop("environment", None)
    return result


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else "" if value is None else str(value)


def _rounded(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _rounded(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(inner) for inner in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value
