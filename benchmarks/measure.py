"""What the benchmarks share: ways that take turns, medians, the machine, a table of rows and a JSON file.

A shared machine gives a process more or less of a core from one second to the next. So the ways that are compared take
turns, the median of each counts, and beside the clock stand processor seconds, which other processes hardly change.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from cige.json_text import to_json

PACKAGES = ("cige", "numpy", "torch", "onnxruntime")


@dataclass(frozen=True)
class Timing:
    """Medians over the rounds, in seconds.

    Attributes:
        clock: on the clock.
        processor: of all threads together.
    """

    clock: float
    processor: float


def in_turns(ways: Mapping[str, Callable[[], Any]], *, n_rounds: int, device: str = "cpu") -> dict[str, Timing]:
    """Run each way once to warm up and then `n_rounds` times, turn by turn; a way ends when `device` has finished."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(n_rounds + 1):
        for name, run in ways.items():
            clock, processor = time.perf_counter(), time.process_time()
            run()
            finish(device)
            taken[name].append((time.perf_counter() - clock, time.process_time() - processor))
    return {name: Timing(*map(median, zip(*rounds[1:], strict=True))) for name, rounds in taken.items()}


def finish(device: str) -> None:
    """Wait until a GPU has done what it was given."""
    if device.startswith("cuda"):
        import torch

        torch.cuda.synchronize()


def options(doc: str | None, *, n_rounds: int, n_threads: int | None = 2) -> argparse.ArgumentParser:
    """A parser with the options of every benchmark; those without `n_threads` use one."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=n_rounds, help="turns of each way (default: %(default)s)")
    if n_threads is not None:
        parser.add_argument("--threads", type=int, default=n_threads, help="of each way (default: %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write the result to this file")
    return parser


def use_threads(n_threads: int) -> None:
    """Threads of PyTorch from now on, and of ONNX Runtime for models that are loaded from now on."""
    import torch

    os.environ["OMP_NUM_THREADS"] = str(n_threads)
    torch.set_num_threads(n_threads)


def add_device_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", default="cpu", help="cpu (default) or cuda")


def add_data_option(parser: argparse.ArgumentParser) -> None:
    given = os.environ.get("CIGE_DATA")
    parser.add_argument(
        "--data-dir", default=given, required=given is None, type=Path, help="holds ner/ and lexicon/ ($CIGE_DATA)"
    )


def environment(*, threads: int, n_rounds: int, device: str = "cpu") -> dict[str, Any]:
    """Machine, versions, threads and rounds, as JSON can hold them."""
    return {
        "machine": platform.processor() or platform.machine(),
        "device": device_name(device),
        "n_cores": os.cpu_count(),
        "threads": threads,
        "rounds": n_rounds,
        "python": platform.python_version(),
    } | {name: found for name in PACKAGES if (found := _version(name))}


def device_name(device: str) -> str:
    """What a GPU calls itself; "cpu" for a CPU."""
    if not device.startswith("cuda"):
        return device
    import torch

    return torch.cuda.get_device_name(device)


def report(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows as a table; the keys of the first are its head."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for name in rows[0]:
        table.add_column(name.replace("_", " "), justify="left" if isinstance(rows[0][name], str) else "right")
    for row in rows:
        table.add_row(*(_shown(row.get(name)) for name in rows[0]))
    Console(width=None if os.isatty(1) else 140, highlight=False).print(table)


def write(result: Mapping[str, Any], path: str | None) -> None:
    """Write a result as JSON, if a file was asked for; floats to four figures."""
    if path is not None:
        text = to_json(_rounded(result), indent=1)
        Path(path).write_text(text + "\n", encoding="utf-8")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


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
