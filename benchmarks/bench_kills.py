"""Jobs of `cige annotate` that are killed with SIGKILL at random moments, given again, and compared byte for byte.

Each run kills after a number of parts that the seed draws, and somewhere within the next part: of local processes a
worker or the whole job, which is drawn too; of Ray an actor, of Spark a Python worker, while the driver of all runs
goes on. A job that does not end well is given again until it does. Then every file of the output is compared with that
of a job that nothing disturbed: a lost or doubled row would change one.

  cige bench kills                                  20 runs of local processes, Ray actors and Spark workers
  cige bench kills --engines local --runs 5
  cige bench kills --input sentences.txt --engines local --runs 1 --kills 3 --jobs-only
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

import psutil
from measure import environment, options, report, write

from cige.bulk.annotator import Annotator, AnnotatorSettings
from cige.bulk.job import Job
from cige.errors import CigeError

ENGINES = ("local", "ray", "spark")
WORKERS = {"local": "multiprocessing.spawn ", "ray": "ray::MapWorker", "spark": "pyspark.daemon"}
SENTENCE = "罗氏公司总裁林晓岚{}从巴塞尔飞抵南京市长江大桥，{}万人参观了上海的展览。\n"
WORKER, JOB = "worker", "job"
MOST_RUNS_OF_A_JOB = 20


def contents(folder: Path) -> dict[str, str]:
    """The checksum of every file of a folder, by its name below it."""
    return {
        file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


@dataclass
class Killed:
    """What happened in one run.

    Attributes:
        kills: how many workers and jobs were killed.
        n_commands: how often the command was given.
        differences: files that are missing, added or not as in the undisturbed output.
    """

    kills: Counter[str] = field(default_factory=Counter)
    n_commands: int = 0
    differences: list[str] = field(default_factory=list)


class Started(Protocol):
    """A job that runs: a process, or what `_InThread` is."""

    pid: int

    def poll(self) -> int | None: ...

    def wait(self) -> int: ...


class _InThread:
    """A job whose driver is this process, which keeps Ray's cluster or Spark's session for all jobs."""

    def __init__(self, bench: Bench, output: Path):
        self.pid, self._code, self._bench = os.getpid(), 1, bench
        versions = Annotator.open(AnnotatorSettings()).versions
        self._job = Job.plan(bench.source, output, AnnotatorSettings(), versions, part_rows=bench.part_rows)
        self._job.begin()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            if self._bench.engine == "ray":
                from cige.bulk.ray_data import annotate_parts as with_ray

                records = with_ray(self._job, self._job.pending(), n_actors=self._bench.n_processes)
            else:
                from cige.bulk.spark_sql import annotate_parts as with_spark

                records = with_spark(self._job, self._job.pending(), n_tasks=self._bench.n_processes)
            for _ in records:
                pass
            self._job.finish()
        except Exception as error:  # whatever the engine raises: the job is given again
            self._bench.log.write(f"{type(error).__name__}: {error}\n".encode())
            self._bench.log.flush()
        else:
            self._code = 0

    def poll(self) -> int | None:
        return None if self._thread.is_alive() else self._code

    def wait(self) -> int:
        self._thread.join()
        return self._code


@dataclass(frozen=True)
class Bench:
    """One input, one engine, and how jobs are started and killed.

    Attributes:
        source: the input.
        engine: "local", "ray" or "spark".
        n_processes: of each job.
        part_rows: rows of a part, or None.
        targets: what may be killed, WORKER or JOB.
        log: where the output of the jobs goes.
    """

    source: Path
    engine: str
    n_processes: int
    part_rows: int | None
    targets: tuple[str, ...]
    log: IO[bytes]

    def start(self, output: Path) -> Started:
        if self.engine != "local":
            return _InThread(self, output)
        command = [sys.executable, "-m", "cige.cli", "annotate", str(self.source), str(output)]
        command += ["--processes", str(self.n_processes)]
        command += [] if self.part_rows is None else ["--part-rows", str(self.part_rows)]
        return subprocess.Popen(command, start_new_session=True, stdout=self.log, stderr=self.log)

    def undisturbed(self, output: Path) -> dict[str, str]:
        """The contents of the output of local processes; what is there of it already is kept."""
        one = Bench(self.source, "local", self.n_processes, self.part_rows, (), self.log)
        if one.start(output).wait():
            raise CigeError(f"the job that is not disturbed failed; see {self.log.name}")
        return contents(output)

    def killed(self, output: Path, expected: dict[str, str], n_kills: int, rng: random.Random) -> Killed:
        """One run: kills at random moments, then until the job ends, then the comparison."""
        found = Killed()
        n_parts = sum(name.startswith("data/") for name in expected)
        moments = sorted(rng.sample(range(max(n_kills, n_parts * 4 // 5)), n_kills))
        job = self._give(output, found)
        for n_commits in moments:
            target = rng.choice(self.targets)
            job = self._at(output, n_commits, job, found)
            time.sleep(rng.random() * self._seconds_of_a_part(output))
            if job.poll() is None:
                found.kills[target] += self._kill(job, target, rng)
            if target == JOB:
                job.wait()
        while job.wait():
            job = self._give(output, found)
        there = contents(output)
        found.differences = sorted(n for n in {*there, *expected} if there.get(n) != expected.get(n))
        return found

    def _give(self, output: Path, found: Killed) -> Started:
        found.n_commands += 1
        if found.n_commands > MOST_RUNS_OF_A_JOB:
            raise CigeError(f"{self.engine}: the job was given {MOST_RUNS_OF_A_JOB} times and did not end")
        return self.start(output)

    def _at(self, output: Path, n_commits: int, job: Started, found: Killed) -> Started:
        """The job once so many parts are committed; it is given again where it ended badly."""
        while _n_commits(output) < n_commits or not _workers(job, self.engine):
            if (code := job.poll()) == 0:
                break
            if code is not None:
                job = self._give(output, found)
            time.sleep(min(0.2, self._seconds_of_a_part(output) / 20))
        return job

    def _kill(self, job: Started, target: str, rng: random.Random) -> int:
        """Kill a worker, or the job with all that it started; how many targets were hit."""
        if target == WORKER:
            workers = _workers(job, self.engine)
            return _end(rng.choice(workers)) if workers else 0
        own = psutil.Process(job.pid).children(recursive=True)
        found = _end(psutil.Process(job.pid))
        for process in own:
            _end(process)
        return found

    def _seconds_of_a_part(self, output: Path) -> float:
        """About; some of the parts are killed as they begin, some as they are written."""
        times = sorted(file.stat().st_mtime for file in output.glob("commits/part*"))
        return self.n_processes * (times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else 0.1


def _n_commits(output: Path) -> int:
    return len(list(output.glob("commits/part*")))


def _workers(job: Started, engine: str) -> list[psutil.Process]:
    """The processes that annotate."""
    found = []
    with suppress(psutil.Error):
        for process in psutil.Process(job.pid).children(recursive=True):
            with suppress(psutil.Error):  # it ended meanwhile
                if WORKERS[engine] in " ".join(process.cmdline()) and (engine != "spark" or _is_forked(process)):
                    found.append(process)
    return found


def _is_forked(process: psutil.Process) -> bool:
    """Whether it is a worker and not the daemon that makes them."""
    parent = process.parent()
    return parent is not None and WORKERS["spark"] in " ".join(parent.cmdline())


def _end(process: psutil.Process) -> int:
    try:
        process.send_signal(signal.SIGKILL)
    except psutil.Error:
        return 0
    return 1


@contextmanager
def cluster(engine: str, n_cpus: int) -> Iterator[None]:
    """A Ray cluster on this machine, which jobs find; nothing for other engines."""
    if engine != "ray":
        yield
        return
    import ray
    import ray.data

    ray.init(num_cpus=n_cpus, include_dashboard=False, object_store_memory=1 << 28, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    try:
        yield
    finally:
        ray.shutdown()


def bench_kills(args: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    """A row per engine: runs, how many gave the undisturbed bytes, and what was killed."""
    source, expected, rows = args.input, None, []
    if source is None:
        source = folder / "texts.txt"
        texts = (SENTENCE.format(chr(0x4E00 + k % 20_000), chr(0x5000 + k % 19_000)) for k in range(args.rows))
        source.write_text("".join(texts), encoding="utf-8")
    with open(folder / "jobs.log", "wb") as log:
        for engine in args.engines:
            targets = (WORKER,) if engine != "local" else (JOB,) if args.jobs_only else (WORKER, JOB)
            bench = Bench(source.absolute(), engine, args.processes, args.part_rows, targets, log)
            expected = expected or bench.undisturbed(args.undisturbed or folder / "undisturbed")
            with cluster(engine, args.processes):
                rows.append(_runs(bench, expected, args, folder))
    return rows


def _runs(bench: Bench, expected: dict[str, str], args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    kills, n_commands, n_same, began = Counter[str](), 0, 0, time.monotonic()
    for k in range(args.runs):
        output = folder / f"{bench.engine}-{k}"
        found = bench.killed(output, expected, args.kills, random.Random(f"{args.seed} {bench.engine} {k}"))
        kills += found.kills
        n_commands += found.n_commands
        n_same += not found.differences
        said = f"differs in {', '.join(found.differences[:5])}" if found.differences else "the same bytes"
        print(f"{bench.engine}, run {k + 1}: {dict(found.kills)}, given {found.n_commands} times, {said}", flush=True)
    return {
        "engine": bench.engine,
        "runs": args.runs,
        "identical": n_same,
        "killed_workers": kills[WORKER],
        "killed_jobs": kills[JOB],
        "commands": n_commands,
        "files": len(expected),
        "minutes": (time.monotonic() - began) / 60,
    }


def main() -> None:
    parser = options(__doc__, n_rounds=1, n_threads=None)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--runs", type=int, default=20, metavar="N", help="of each engine (default: 20)")
    parser.add_argument("--kills", type=int, default=2, metavar="N", help="in each run (default: 2)")
    parser.add_argument(
        "--jobs-only", action="store_true", help="kill whole jobs of local processes, no single workers"
    )
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="of a job (default: 2)")
    parser.add_argument("--rows", type=int, default=10_000, metavar="N", help="sentences (default: 10000)")
    parser.add_argument("--part-rows", type=int, default=None, metavar="N", help="rows of a part (default: a 20th)")
    parser.add_argument("--input", type=Path, metavar="FILE", help="sentences of your own, in parts of the usual size")
    parser.add_argument("--undisturbed", type=Path, metavar="FOLDER", help="keep the undisturbed output here")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if args.input is None and args.part_rows is None:
        args.part_rows = max(1, args.rows // 20)
    with tempfile.TemporaryDirectory() as folder:
        rows = bench_kills(args, Path(folder))
    report("Killed jobs beside one that nothing disturbed", rows)
    facts = {"seed": args.seed, "processes": args.processes, "kills": args.kills, "load": os.getloadavg()[0]}
    write(environment(threads=1, n_rounds=args.runs) | facts | {"cases": rows}, args.json)
    if any(row["identical"] < row["runs"] for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
