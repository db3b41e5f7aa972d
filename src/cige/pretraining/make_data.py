"""make_data: turn a corpus into a folder of shards, with several processes; an interrupted run continues.

data/
  manifest.json          settings, counts, the report on the corpus, and each shard's checksum
  vocabulary/            a copy of the joint vocabulary
  shard-00000/ ...       training data
  held-out-00000/ ...    evaluation data: every n-th document
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from cige.errors import DataError
from cige.folders.atomic import atomic_file
from cige.folders.kinds import PRETRAINING_DATA
from cige.folders.manifest import MANIFEST, sha256
from cige.json_text import to_json
from cige.lexicon.joint_vocabulary import JointVocabulary
from cige.pretraining.corpus import CorpusReport, CorpusRules, read_documents
from cige.pretraining.shards import check_shard
from cige.pretraining.tokenise import Packet, fingerprint, start_worker, write_packet

VERSION, VOCABULARY = 1, "vocabulary"
TRAIN, HELD_OUT = "shard", "held-out"


@dataclass(frozen=True)
class DataSettings:
    """The settings that determine the shards, in addition to the corpus and the vocabulary.

    Attributes:
        rules: how lines become documents.
        max_line_tokens: a line with more lattice tokens is cut in two at punctuation, which is better than cutting it
            where an instance is full.
        segment_words: whether to segment words with jieba, which whole-word masking of characters needs and which takes
            most of the time.
        held_out: every n-th document is held out for evaluation; 0 holds out none.
        shard_size: approximate number of characters per shard.
    """

    rules: CorpusRules = field(default_factory=CorpusRules)
    max_line_tokens: int = 170
    segment_words: bool = True
    held_out: int = 200
    shard_size: int = 1_000_000


def make_data(
    corpus: Sequence[str | Path],
    vocabulary: str | Path,
    output: str | Path,
    *,
    settings: DataSettings | None = None,
    n_workers: int = 1,
    show_progress: bool = True,
) -> CorpusReport:
    """Tokenise a corpus. Shards that an earlier run of the same command finished are kept.

    Args:
        corpus: text files (plain, .gz or .xz) with one sentence per line and a blank line between documents.
        vocabulary: folder of a JointVocabulary.
        output: folder to write.
        n_workers: number of processes.

    Raises:
        CigeError: the corpus or the vocabulary cannot be read, or `output` holds shards made from something else.
    """
    settings, folder = settings or DataSettings(), Path(output)
    words = JointVocabulary.load(vocabulary)
    _claim(folder, words)
    report = CorpusReport()
    made_from = to_json([words.fingerprint, asdict(settings)], sort_keys=True, ensure_ascii=True)
    console, start = Console(stderr=True, quiet=not show_progress), time.perf_counter()
    names: list[str] = []
    for name in _write_all(_packets(corpus, settings, report, folder, made_from), folder, settings, n_workers):
        names.append(name)
        rate = report.n_characters / (time.perf_counter() - start)
        console.print(
            f"{name}  {report.n_documents:,} documents, {report.n_characters:,} characters read ({rate:,.0f}/s)",
            highlight=False,
        )
    facts = {
        "settings": asdict(settings),
        "vocabulary": words.fingerprint,
        "report": asdict(report),
        "shards": {name: _shard_facts(folder / name) for name in sorted(names)},
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


def _packets(
    corpus: Sequence[str | Path], settings: DataSettings, report: CorpusReport, folder: Path, made_from: str
) -> Iterator[Packet]:
    """The documents of each shard; which these are depends on the corpus and the settings alone."""
    pending: dict[str, list[tuple[str, ...]]] = {TRAIN: [], HELD_OUT: []}
    sizes, n_made = dict.fromkeys(pending, 0), dict.fromkeys(pending, 0)

    def packet(kind: str) -> Packet:
        name, documents = f"{kind}-{n_made[kind]:05}", pending[kind]
        n_made[kind] += 1
        pending[kind], sizes[kind] = [], 0
        return Packet(folder / name, documents, fingerprint(made_from, documents))

    for number, document in enumerate(read_documents(corpus, settings.rules, report), start=1):
        kind = HELD_OUT if settings.held_out and number % settings.held_out == 0 else TRAIN
        pending[kind].append(document)
        sizes[kind] += sum(map(len, document))
        if sizes[kind] >= settings.shard_size:
            yield packet(kind)
    yield from [packet(kind) for kind in pending if pending[kind]]


def _write_all(packets: Iterator[Packet], folder: Path, settings: DataSettings, n_workers: int) -> Iterator[str]:
    """Write every missing shard; yields the names of all shards as they are finished."""
    worker = (str(folder / VOCABULARY), settings.max_line_tokens, settings.segment_words)
    if n_workers == 1:
        start_worker(*worker)
        for packet in packets:
            yield packet.folder.name if _is_made(packet) else write_packet(packet)
        return
    running: set[Future[str]] = set()
    # Spawned, not forked: the caller may have threads (torch), which a fork would break.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(n_workers, mp_context=context, initializer=start_worker, initargs=worker) as pool:
        try:
            for packet in packets:
                if _is_made(packet):
                    yield packet.folder.name
                    continue
                running.add(pool.submit(write_packet, packet))
                if len(running) > 2 * n_workers:  # limits how far the corpus is read ahead
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    yield from [future.result() for future in done]
            yield from [future.result() for future in running]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _is_made(packet: Packet) -> bool:
    if not packet.folder.exists():
        return False
    if check_shard(packet.folder)["origin"] != packet.origin:
        raise DataError(
            f"{packet.folder}: made from another corpus or with other settings; use those again, or choose another "
            "output folder"
        )
    return True


def _shard_facts(folder: Path) -> dict[str, Any]:
    facts = check_shard(folder)
    return {name: facts[name] for name in facts if name.startswith("n_")} | {"sha256": sha256(folder / MANIFEST)}
