"""Overhead of local processes, Ray and Spark over a plain loop over `ner.pipe`, by the clock, so on a quiet machine.

Each way reads the same sentences in processes of its own, with one thread each, and once more a single sentence, which
is its start: Python, the model, Ray's services or Spark's virtual machine. The plain loop reads lines and counts
entities; it writes nothing. The system's load before each run is in the table: with one process it should be near 0 to
1 on two cores. (Processor seconds would stand load better, but Ray's services do not wait for their workers, so the
system does not add up what those used.)
"""

import ctypes
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from benchmarks.measure import told
from cige.errors import CigeError

TABLES = {"cases": "{n_sentences:,} sentences, {n_chars:,} characters"}
FLAT = True
WAYS = {"plain": "", "local": "local", "ray": "ray", "spark": "spark"}
WAYS |= {"local, 2 processes": "local", "ray, 2 actors": "ray", "spark, 2 tasks": "spark"}
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
PLAIN = """
import sys, cige
from cige.nn.memory import keep_freed_memory
keep_freed_memory()
ner = cige.load()
with open(sys.argv[1], encoding="utf-8") as file:
    print(sum(len(entities) for entities in ner.pipe(line.rstrip("\\n") for line in file)))
"""
PATIENCE_S = 60  # for services that end after the command that started them


def bench(
    *,
    input: Annotated[Path, "a sentence a line"],
    rows: Annotated[int, "its first lines"] = 200_000,
    ways: Annotated[Sequence[str], WAYS, "that are compared"] = tuple(WAYS),
    rounds: int = 1,
) -> dict[str, Any]:
    """A row for each way and round; those of a round stand beside each other, and each is compared with its plain."""
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise CigeError("this system cannot report when processes end that outlive their parents")
    with tempfile.TemporaryDirectory() as folder, open(input, encoding="utf-8") as given:
        lines = list(islice(given, rows))
        (Path(folder) / "sentences.txt").write_text("".join(lines), encoding="utf-8")
        (Path(folder) / "one.txt").write_text("张桂梅在云南华坪创办女子高中\n", encoding="utf-8")
        cases = told(case for k in range(rounds) for case in one_round(k, ways, Path(folder)))
    return {"n_sentences": len(lines), "n_chars": sum(map(len, lines)), "cases": cases}


def one_round(number: int, ways: Sequence[str], folder: Path) -> Iterator[dict[str, Any]]:
    seconds: dict[str, float] = {}
    for way in ways:
        load = os.getloadavg()[0]
        start, clock = (run(way, folder / f"{x}.txt", folder / f"{x} {number} {way}") for x in ("one", "sentences"))
        seconds[way] = clock - start
        row = {"round": number, "way": way, "clock_s": clock, "start_s": start, "reading_s": seconds[way]}
        for other in ("plain", "local"):
            row[f"over_{other}"] = seconds[way] / seconds[other] - 1 if other in seconds else None
        alone = seconds.get(way.partition(",")[0])
        yield row | {"times_one": alone / seconds[way] if alone is not None else None, "load": load}


def run(way: str, source: Path, output: Path) -> float:
    """Seconds on the clock."""
    command = [sys.executable, "-c", PLAIN, str(source)]
    if way != "plain":
        options = ["--engine", WAYS[way], "--processes", "2" if ", 2 " in way else "1"]
        command = [sys.executable, "-m", "cige.cli", "annotate", str(source), str(output), *options]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "RAY_worker_niceness": "0"}  # Ray's workers are nice by 15
    log = output.with_suffix(".log")  # a pipe would stay open as long as services do
    begun = time.perf_counter()
    with open(log, "wb") as out:
        code = subprocess.run(command, env=environment, stdout=out, stderr=out).returncode
    clock = time.perf_counter() - begun
    if code:
        raise CigeError(f"{way}: exit code {code}: {log.read_text(errors='replace')[-2000:]}")
    _wait_for_services()
    return clock


def _wait_for_services() -> None:
    """Until what outlived its parent has ended too, so that it takes no time from the next run."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.05)
        except ChildProcessError:
            return
