"""Jobs of `cige annotate` killed with SIGKILL at random moments, given again, and compared byte for byte.

Each run kills after a number of parts that the seed draws, and somewhere within the next part: of local processes a
worker or the whole job, which is drawn too; of Ray an actor, of Spark a Python worker, while the driver of all runs
goes on. A job that does not end well is given again until it does. Then every file of the output is compared with that
of a job that nothing disturbed: a lost or doubled row would change one.
"""

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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Annotated, Any

import psutil

from benchmarks.speed.bulk import SENTENCE
from cige.bulk.annotator import Annotator, AnnotatorSettings
from cige.bulk.job import Job
from cige.errors import CigeError

TABLES = {"cases": "Killed jobs beside one that nothing disturbed"}
FLAT = True
ENGINES = ("local", "ray", "spark")
WORKERS = {"local": "multiprocessing.spawn ", "ray": "ray::MapWorker", "spark": "pyspark.daemon"}
WORKER, JOB = "worker", "job"
MOST_RUNS_OF_A_JOB = 20


def bench(
    *,
    engines: Annotated[Sequence[str], ENGINES, "of the jobs"] = ENGINES,
    runs: Annotated[int, "of each engine"] = 20,
    kills: Annotated[int, "in each run"] = 2,
    jobs_only: Annotated[bool, "kill whole jobs of local processes, no single workers"] = False,
    processes: Annotated[int, "of a job"] = 2,
    rows: Annotated[int, "sentences"] = 10_000,
    part_rows: Annotated[int | None, "rows of a part; a 20th by default"] = None,
    input: Annotated[Path | None, "sentences of your own, in parts of the usual size"] = None,
    undisturbed: Annotated[Path | None, "keep the undisturbed output in this folder"] = None,
    seed: int = 0,
) -> dict[str, Any]:
    """A row per engine: runs, how many gave the undisturbed bytes, and what was killed."""
    with tempfile.TemporaryDirectory() as name:
        folder, cases, expected = Path(name), [], {}
        if input is None:
            input, part_rows = folder / "texts.txt", part_rows or max(1, rows // 20)
            texts = (SENTENCE.format(chr(0x4E00 + k % 20_000), chr(0x5000 + k % 19_000)) for k in range(rows))
            input.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        with open(folder / "jobs.log", "wb") as log:
            for engine in engines:
                targets = (WORKER,) if engine != "local" else (JOB,) if jobs_only else (WORKER, JOB)
                own = Bench(input.absolute(), engine, processes, part_rows, targets, log)
                expected = expected or own.undisturbed(undisturbed or folder / "undisturbed")
                with cluster(engine, processes):
                    cases.append(own.all_runs(expected, runs, kills, seed, folder))
    facts = {"rounds": runs, "seed": seed, "processes": processes, "kills": kills, "load": os.getloadavg()[0]}
    return facts | {"cases": cases}


def failed(result: dict[str, Any]) -> bool:
    return any(row["identical"] < row["runs"] for row in result["cases"])


def contents(folder: Path) -> dict[str, str]:
    """The checksum of every file of a folder, by its name below it."""
    files = (file for file in sorted(folder.rglob("*")) if file.is_file())
    return {file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


@dataclass
class Killed:
    """One run: how many workers and jobs were killed, how often the command was given, and files that differ."""

    kills: Counter[str] = field(default_factory=Counter)
    n_commands: int = 0
    differences: list[str] = field(default_factory=list)


class _InThread:
    """A job whose driver is this process, which keeps Ray's cluster or Spark's session for all jobs."""

    def __init__(self, bench: "Bench", output: Path):
        self.pid, self._code, self._bench = os.getpid(), 1, bench
        versions = Annotator.open(AnnotatorSettings()).versions
        self._job = Job.plan(bench.source, output, AnnotatorSettings(), versions, part_rows=bench.part_rows)
        self._job.begin()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        job, n = self._job, self._bench.n_processes
        try:
            if self._bench.engine == "ray":
                from cige.bulk import ray_data

                list(ray_data.annotate_parts(job, job.pending(), n_actors=n))
            else:
                from cige.bulk import spark_sql

                list(spark_sql.annotate_parts(job, job.pending(), n_tasks=n))
            job.finish()
            self._code = 0
        except Exception as error:  # whatever the engine raises: the job is given again
            self._bench.log.write(f"{type(error).__name__}: {error}\n".encode())
            self._bench.log.flush()

    def poll(self) -> int | None:
        return None if self._thread.is_alive() else self._code

    def wait(self) -> int:
        self._thread.join()
        return self._code


Started = subprocess.Popen[bytes] | _InThread


@dataclass(frozen=True)
class Bench:
    """One input, one engine, and how jobs are started and killed."""

    source: Path
    engine: str
    n_processes: int
    part_rows: int | None
    targets: tuple[str, ...]  # what may be killed, WORKER or JOB
    log: IO[bytes]  # where the output of the jobs goes

    def all_runs(self, expected: dict[str, str], n: int, n_kills: int, seed: int, folder: Path) -> dict[str, Any]:
        runs, began = [], time.monotonic()
        for k in range(n):
            rng = random.Random(f"{seed} {self.engine} {k}")
            runs.append(found := self.killed(folder / f"{self.engine}-{k}", expected, n_kills, rng))
            same = f"differs in {', '.join(found.differences[:5])}" if found.differences else "the same bytes"
            times = f"given {found.n_commands} times"
            print(f"{self.engine}, run {k + 1}: {dict(found.kills)}, {times}, {same}", flush=True)
        kills = sum((found.kills for found in runs), Counter[str]())
        row = {"engine": self.engine, "runs": n, "identical": sum(not found.differences for found in runs)}
        row |= {"killed_workers": kills[WORKER], "killed_jobs": kills[JOB]}
        row |= {"commands": sum(found.n_commands for found in runs), "files": len(expected)}
        return row | {"minutes": (time.monotonic() - began) / 60}

    def start(self, output: Path) -> Started:
        if self.engine != "local":
            return _InThread(self, output)
        command = [sys.executable, "-m", "cige.cli", "annotate", str(self.source), str(output)]
        command += ["--processes", str(self.n_processes)]
        command += [] if self.part_rows is None else ["--part-rows", str(self.part_rows)]
        return subprocess.Popen(command, start_new_session=True, stdout=self.log, stderr=self.log)

    def undisturbed(self, output: Path) -> dict[str, str]:
        """The contents of the output of local processes; what is there of it already is kept."""
        if Bench(self.source, "local", self.n_processes, self.part_rows, (), self.log).start(output).wait():
            raise CigeError(f"the job that is not disturbed failed; see {self.log.name}")
        return contents(output)

    def killed(self, output: Path, expected: dict[str, str], n_kills: int, rng: random.Random) -> Killed:
        """One run: kills at random moments, then until the job ends, then the comparison."""
        found = Killed()
        n_parts = sum(name.startswith("data/") for name in expected)
        job = self._give(output, found)
        for n_commits in sorted(rng.sample(range(max(n_kills, n_parts * 4 // 5)), n_kills)):
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
        while len(list(output.glob("commits/part*"))) < n_commits or not self._workers(job):
            if (code := job.poll()) == 0:
                break
            if code is not None:
                job = self._give(output, found)
            time.sleep(min(0.2, self._seconds_of_a_part(output) / 20))
        return job

    def _kill(self, job: Started, target: str, rng: random.Random) -> int:
        """Kill a worker, or the job with all that it started; how many targets were hit."""
        if target == WORKER:
            victims = [rng.choice(workers)] if (workers := self._workers(job)) else []
        else:
            victims = [psutil.Process(job.pid), *psutil.Process(job.pid).children(recursive=True)]
        hit = 0
        for k, process in enumerate(victims):
            with suppress(psutil.Error):  # it ended meanwhile
                process.send_signal(signal.SIGKILL)
                hit += k == 0
        return hit

    def _workers(self, job: Started) -> list[psutil.Process]:
        """The processes that annotate."""
        found = []
        with suppress(psutil.Error):
            for process in psutil.Process(job.pid).children(recursive=True):
                with suppress(psutil.Error):  # it ended meanwhile
                    # Spark's daemon, which makes workers, is called as they are.
                    parent = process.parent() if self.engine == "spark" else process
                    if all(p and WORKERS[self.engine] in " ".join(p.cmdline()) for p in (process, parent)):
                        found.append(process)
        return found

    def _seconds_of_a_part(self, output: Path) -> float:
        """About; some of the parts are killed as they begin, some as they are written."""
        times = sorted(file.stat().st_mtime for file in output.glob("commits/part*"))
        return self.n_processes * (times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else 0.1


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
