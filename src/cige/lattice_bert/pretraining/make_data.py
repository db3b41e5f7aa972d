"""make_data: turn a corpus into a folder of shards, with several processes; an interrupted run continues.

data/
  manifest.json          settings, counts, the report on the corpus, and the index of shards with their checksums
  vocabulary/            a copy of the joint vocabulary
  shard-00000/ ...       the documents of a stretch of the corpus, those that are held out for evaluation last
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, as_completed, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from cige.errors import CigeError, DataError
from cige.folders.atomic import atomic_file
from cige.folders.manifest import MANIFEST
from cige.folders.processes import process_pool
from cige.json_text import to_json
from cige.lattice_bert.encoder.joint_vocabulary import JointVocabulary
from cige.lattice_bert.kinds import PRETRAINING_DATA
from cige.lattice_bert.pretraining.corpus import CorpusReport
from cige.lattice_bert.pretraining.make_shard import VOCABULARY, DataSettings, ShardJob
from cige.lattice_bert.pretraining.shards import ShardEntry
from cige.lattice_bert.pretraining.units import Unit, cut_units

VERSION = 2  # of the index; in version 1, held-out documents had separate shards
_BYTES_PER_CHARACTER = 3  # of Chinese text in UTF-8


def make_data(
    corpus: Sequence[str | Path],
    vocabulary: str | Path,
    output: str | Path,
    *,
    settings: DataSettings | None = None,
    n_workers: int = 1,
    engine: str = "local",
    show_progress: bool = True,
) -> CorpusReport:
    """Tokenise a corpus. Shards that an earlier run of the same command finished are kept.

    The bytes of every file of `output` are determined by the text, the vocabulary, the settings, and the paths of the
    corpus, which the index and messages on bad lines name.

    Args:
        corpus: text files (plain, .gz or .xz) with one sentence per line and a blank line between documents.
        vocabulary: folder of a JointVocabulary.
        engine: "local" for `n_workers` processes of this machine, "ray" for as many tasks of a Ray cluster.

    Raises:
        CigeError: the corpus or the vocabulary cannot be read, or `output` holds shards made from something else.
    """
    settings, folder = settings or DataSettings(), Path(output).absolute()
    if engine not in ENGINES:
        raise CigeError(f"engine {engine!r}: expected {' or '.join(ENGINES)}")
    words = JointVocabulary.load(vocabulary)
    _claim(folder, words)
    job = ShardJob(folder, words.fingerprint, settings)
    units = cut_units(
        [Path(path).absolute() for path in corpus],
        _BYTES_PER_CHARACTER * settings.shard_size,
        is_document_a_line=settings.rules.is_document_a_line,
    )
    console, start, n_characters = Console(stderr=True, quiet=not show_progress), time.perf_counter(), 0
    shards = []
    for shard in ENGINES[engine](job, units, n_workers):
        shards.append(shard)
        n_characters += shard["report"]["n_characters"]
        rate = n_characters / (time.perf_counter() - start)
        console.print(f"{shard['name']}  {n_characters:,} characters ({rate:,.0f}/s)", highlight=False)
    shards.sort(key=lambda shard: int(shard["name"].rpartition("-")[2]))
    report = CorpusReport.of(CorpusReport(**shard.pop("report")) for shard in shards)
    if not report.n_documents:
        raise DataError(f"{', '.join(map(str, corpus))}: no text found; expected one sentence per line")
    facts = {
        "settings": asdict(settings),
        "vocabulary": words.fingerprint,
        "report": asdict(report),
        "shards": {shard.pop("name"): shard for shard in shards},
    }
    with atomic_file(folder / MANIFEST) as aside:
        text = to_json({"kind": PRETRAINING_DATA, "version": VERSION, **facts}, indent=1)
        aside.write_text(text, encoding="utf-8")
    return report


def _claim(folder: Path, words: JointVocabulary) -> None:
    """Copy the vocabulary into the folder, or check that the folder has the same one."""
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder}: a file; expected a folder to write shards to")
    if (folder / VOCABULARY).is_dir():
        old = JointVocabulary.load(folder / VOCABULARY)
        if old.fingerprint != words.fingerprint:
            raise DataError(f"{folder}: holds data of another vocabulary; choose another output folder")
        return
    if folder.is_dir() and any(folder.iterdir()):
        raise DataError(f"{folder}: there already, and not pre-training data; choose another output folder")
    words.save(folder / VOCABULARY)


Workers = Callable[[ShardJob, Iterator[Unit], int], Iterator[ShardEntry]]


def in_processes(job: ShardJob, units: Iterator[Unit], n_processes: int) -> Iterator[ShardEntry]:
    """Yield the entry of each shard as it is finished, in any order; raises CigeError if a process died."""
    if n_processes == 1:
        yield from map(job.make, units)
        return
    running: set[Future[ShardEntry]] = set()
    try:
        with process_pool(n_processes) as pool:
            for unit in units:
                running.add(pool.submit(job.make, unit))
                if len(running) > 2 * n_processes:  # limits how far compressed files are decompressed ahead
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    yield from [future.result() for future in done]
            yield from (future.result() for future in as_completed(running))
    except BrokenProcessPool as reason:
        raise CigeError(
            f"a process died while it made a shard in {job.folder} ({reason}); most often memory ran out. Finished "
            "shards are kept: run the same command again, with fewer processes or a smaller shard size"
        ) from reason


def on_ray(job: ShardJob, units: Iterator[Unit], n_tasks: int) -> Iterator[ShardEntry]:
    """The same with up to `n_tasks` tasks of Ray, each on one core of any node; a task whose worker dies runs again.

    Corpus and output must be on storage that all nodes share. The current Ray session is used, or that of RAY_ADDRESS,
    or a new local one.
    """
    try:
        import ray
    except ImportError as reason:
        raise CigeError(f"engine 'ray' needs Ray ({reason}); pip install 'cige[ray]'") from reason
    task, shared = ray.remote(num_cpus=1)(ShardJob.make), ray.put(job)
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


ENGINES: dict[str, Workers] = {"local": in_processes, "ray": on_ray}
