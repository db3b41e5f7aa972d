"""What the engines of `cige annotate` add to a plain loop over `ner.pipe`, by the clock, so on a quiet machine.

Each way reads the same sentences in processes of its own, with one thread each, and once more a single sentence, which
is its start: Python, the model, Ray's services or Spark's virtual machine. The plain loop reads lines and counts
entities; it writes nothing. The system's load before each run is in the table: with one process it should be near 0 to
1 on two cores. (Processor seconds would stand load better, but Ray's services do not wait for their workers, so the
system does not add up what those used.)

  cige bench engines --input sentences.txt             200,000 lines
  cige bench engines --input sentences.txt --rows 20000 --ways plain local
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

from measure import environment, options, report, write

from cige.errors import CigeError

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


def command(way: str, source: Path, output: Path) -> list[str]:
    if way == "plain":
        return [sys.executable, "-c", PLAIN, str(source)]
    n = 2 if ", 2 " in way else 1
    options = ["--engine", WAYS[way], "--processes", str(n)]
    return [sys.executable, "-m", "cige.cli", "annotate", str(source), str(output), *options]


def run(way: str, source: Path, output: Path, log: Path) -> float:
    """Seconds on the clock."""
    begun = time.perf_counter()
    environment = os.environ | {"OMP_NUM_THREADS": "1", "RAY_worker_niceness": "0"}  # Ray's workers are nice by 15
    with open(log, "ab") as out:
        code = subprocess.run(command(way, source, output), env=environment, stdout=out, stderr=out).returncode
    clock = time.perf_counter() - begun
    if code:
        raise CigeError(f"{way}: exit code {code}; see {log}: {log.read_text(errors='replace')[-2000:]}")
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


def bench_engines(source: Path, ways: list[str], folder: Path, n_rounds: int) -> list[dict[str, Any]]:
    """A row for each way and round; those of a round stand beside each other, and each is compared with its plain."""
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise CigeError("this system cannot report when processes end that outlive their parents")
    one = folder / "one.txt"
    one.write_text("张桂梅在云南华坪创办女子高中\n", encoding="utf-8")
    rows: list[dict[str, Any]] = []
    for number in range(n_rounds):
        seconds: dict[str, float] = {}
        for way in ways:
            load = os.getloadavg()[0]
            log = folder / "log"
            start = run(way, one, folder / f"one {number} {way}", log)
            clock = run(way, source, folder / f"{number} {way}", log)
            row = {"round": number, "way": way, "clock_s": clock, "start_s": start, "reading_s": clock - start}
            seconds[way] = row["reading_s"]
            alone = seconds.get(way.partition(",")[0])
            row["over_plain"] = seconds[way] / seconds["plain"] - 1 if "plain" in seconds else None
            row["over_local"] = seconds[way] / seconds["local"] - 1 if "local" in seconds else None
            row["times_one"] = alone / seconds[way] if alone is not None else None
            rows.append(row | {"load": load})
            print({k: round(v, 3) if isinstance(v, float) else v for k, v in rows[-1].items()}, flush=True)
    return rows


def main() -> None:
    parser = options(__doc__, n_rounds=1, n_threads=None)
    parser.add_argument("--input", type=Path, required=True, metavar="FILE", help="a sentence a line")
    parser.add_argument("--rows", type=int, default=200_000, metavar="N", help="its first N lines (default: 200000)")
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "sentences.txt"
        with open(args.input, encoding="utf-8") as given:
            lines = list(islice(given, args.rows))
        source.write_text("".join(lines), encoding="utf-8")
        rows = bench_engines(source, args.ways, Path(name), args.rounds)
    report(f"{len(lines):,} sentences, {sum(map(len, lines)):,} characters", rows)
    facts = {"n_sentences": len(lines), "n_chars": sum(map(len, lines)), "cases": rows}
    write(environment(threads=1, n_rounds=args.rounds) | facts, args.json)


if __name__ == "__main__":
    main()
