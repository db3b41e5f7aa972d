"""A lexicon from 0.3 to 8.8 million words: building, size on disk, loading, memory and speed, and how they grow.

    python benchmarks/bench_lexicon.py --json lexicon.json

Words, vectors and sentences are made up (`make_lexicon.py` says how). Vectors are 8 wide here, so that the text of the
largest size is 0.7 GB and not 16: `--width 200` gives the real thing, if the disk has room. Each step runs in a
process of its own, one after another, on one core. A shared machine gives a process less than a core, so the table has
processor seconds beside those on the clock; for matching the fastest of several rounds counts.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from make_lexicon import make_sentences, make_words, write_vectors
from rich.console import Console
from rich.table import Table

from cige.json_text import to_json
from cige.lexicon.build_with_vectors import build_with_vectors
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.vectors import VectorTable
from cige.lexicon.walk import NativeWalk, Walk

SIZES = (300_000, 3_000_000, 8_800_000)
N_SENTENCES = 20_000
N_ROUNDS = 7
N_TOUCHED = 1000
N_DIGITS = 6


def memory() -> dict[str, float]:
    """Megabytes of this process now: `private` its own, `shared` pages of mapped files, one copy for all processes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    fields = {name: value for name, _, value in (line.partition(":") for line in lines)}
    return {
        name: int(fields[key].split()[0]) / 1024 for name, key in (("private", "RssAnon"), ("shared", "RssFile"))
    } | {"peak": int(fields["VmHWM"].split()[0]) / 1024}


def make(folder: Path, n_words: int, width: int) -> dict[str, Any]:
    words = make_words(n_words)
    write_vectors(folder / "vectors.txt", words, width=width, n_digits=N_DIGITS)
    (folder / "sentences.txt").write_text("\n".join(make_sentences(words, N_SENTENCES)), encoding="utf-8")
    return {
        "text_mb": (folder / "vectors.txt").stat().st_size / 1e6,
        "chars_per_word": sum(map(len, words)) / len(words),
    }


def build(folder: Path) -> dict[str, Any]:
    begin, processor = time.perf_counter(), time.process_time()
    read: list[float] = []

    def on_progress(n_read: int, n_bytes: int) -> None:
        if n_read == n_bytes and not read:
            read.extend((time.perf_counter() - begin, time.process_time() - processor))

    report = build_with_vectors(folder / "vectors.txt", folder / "lexicon", on_progress=on_progress)
    seconds = time.perf_counter() - begin
    megabytes = (folder / "vectors.txt").stat().st_size / 1e6
    sizes = {file.name: file.stat().st_size / 1e6 for file in (folder / "lexicon").iterdir()}
    return {
        "n_taken": report.n_taken,
        "build_s": seconds,
        "build_processor_s": time.process_time() - processor,
        "read_mb_per_s": megabytes / read[0],
        "read_mb_per_processor_s": megabytes / read[1],
        "build_peak_mb": memory()["peak"],
        "index_mb": sum(size for name, size in sizes.items() if name.startswith("trie")),
        "words_mb": sizes["words.txt"] + sizes["offsets.npy"],
        "vectors_mb": sizes["vectors.npy"],
    }


def load(folder: Path, n_rounds: int) -> dict[str, Any]:
    sentences = (folder / "sentences.txt").read_text(encoding="utf-8").split("\n")
    megabytes = sum(len(sentence.encode()) for sentence in sentences) / 1e6
    before = memory()
    begin = time.perf_counter()
    lexicon = Lexicon.load(folder / "lexicon")
    load_s = time.perf_counter() - begin
    loaded = memory()
    speeds = []
    n_matches = 0
    for _ in range(n_rounds):
        begin = time.perf_counter()
        n_matches = sum(len(lexicon.match(sentence)) for sentence in sentences)
        speeds.append(megabytes / (time.perf_counter() - begin))
    used = memory()
    vectors = VectorTable.load(folder / "lexicon")
    rows = random.Random(0).sample(range(len(lexicon)), min(N_TOUCHED, len(lexicon)))
    touched = float(vectors.vectors[np.sort(rows)].astype(np.float32).sum())
    return {
        "load_s": load_s,
        "python_mb": before["private"] + before["shared"],
        "loaded_private_mb": loaded["private"],
        "loaded_shared_mb": loaded["shared"],
        "used_private_mb": used["private"],
        "used_shared_mb": used["shared"],
        "vectors_shared_mb": memory()["shared"] - used["shared"],
        "first_mb_per_s": speeds[0],
        "match_mb_per_s": max(speeds),
        "n_matches": n_matches,
        "checksum": touched,
    }


def in_process(step: str, *arguments: Any) -> dict[str, Any]:
    """Run a step in a fresh process: memory that an earlier one used must not count."""
    command = [sys.executable, __file__, "--step", step, *map(str, arguments)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment)
    if done.returncode:
        sys.exit(f"step {step} failed")
    return dict(json.loads(done.stdout))


STEPS = {
    "make": lambda folder, n_words, width: make(Path(folder), int(n_words), int(width)),
    "build": lambda folder: build(Path(folder)),
    "load": lambda folder, n_rounds: load(Path(folder), int(n_rounds)),
}


def bench_lexicon(
    sizes: tuple[int, ...] = SIZES, *, width: int = 8, n_rounds: int = N_ROUNDS, work_dir: str | None = None
) -> dict[str, Any]:
    """Measure every size; what is made is deleted before the next.

    Args:
        sizes: numbers of words.
        width: numbers a vector.
        n_rounds: passes over the sentences, of which the first and the fastest are kept.
        work_dir: where to make files (the system's folder for temporary ones).
    """
    results = []
    for n_words in sizes:
        folder = Path(tempfile.mkdtemp(prefix="cige-lexicon-", dir=work_dir))
        try:
            found = {"n_words": n_words} | in_process("make", folder, n_words, width) | in_process("build", folder)
            results.append(found | in_process("load", folder, n_rounds))
        finally:
            shutil.rmtree(folder)
    return {
        "machine": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "compiled_walk": Walk is NativeWalk,
        "width": width,
        "n_rounds": n_rounds,
        "sizes": results,
    }


ROWS = {
    "characters a word": ("chars_per_word", ".1f"),
    "vector file, MB": ("text_mb", ",.0f"),
    "build, s": ("build_s", ",.1f"),
    "build, processor s": ("build_processor_s", ",.1f"),
    "  reading, MB a processor s": ("read_mb_per_processor_s", ",.0f"),
    "  peak memory, MB": ("build_peak_mb", ",.0f"),
    "index on disk, MB": ("index_mb", ",.1f"),
    "words on disk, MB": ("words_mb", ",.1f"),
    "vectors on disk, MB": ("vectors_mb", ",.1f"),
    "load, s": ("load_s", ".3f"),
    "memory before loading, MB": ("python_mb", ",.0f"),
    "loaded: private, MB": ("loaded_private_mb", ",.0f"),
    "loaded: mapped, MB": ("loaded_shared_mb", ",.0f"),
    "used: private, MB": ("used_private_mb", ",.0f"),
    "used: mapped, MB": ("used_shared_mb", ",.0f"),
    "1,000 vectors: mapped, MB": ("vectors_shared_mb", ",.1f"),
    "matching, first pass, MB/s": ("first_mb_per_s", ".1f"),
    "matching, MB/s": ("match_mb_per_s", ".1f"),
}


def table(result: dict[str, Any]) -> Table:
    """One column a size, and how often the first size's figure is in the last one's."""
    shown = Table(title=f"{result['width']} numbers a vector, compiled walk: {result['compiled_walk']}")
    shown.add_column("words")
    for found in result["sizes"]:
        shown.add_column(f"{found['n_words']:,}", justify="right")
    shown.add_column("last / first", justify="right")
    for name, (key, form) in ROWS.items():
        values = [found[key] for found in result["sizes"]]
        growth = f"{values[-1] / values[0]:.1f}" if values[0] else ""
        shown.add_row(name, *(format(value, form) for value in values), growth)
    return shown


def main() -> None:
    if sys.argv[1:2] == ["--step"]:
        print(to_json(STEPS[sys.argv[2]](*sys.argv[3:])))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="WORDS")
    parser.add_argument("--width", type=int, default=8, help="numbers a vector (default: 8)")
    parser.add_argument("--rounds", type=int, default=N_ROUNDS)
    parser.add_argument("--work-dir", help="where to make files (default: the system's temporary folder)")
    parser.add_argument("--json", help="write the result to this file")
    arguments = parser.parse_args()
    sizes = tuple(arguments.sizes)
    result = bench_lexicon(sizes, width=arguments.width, n_rounds=arguments.rounds, work_dir=arguments.work_dir)
    Console().print(table(result))
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            file.write(to_json(result, indent=1))


if __name__ == "__main__":
    main()
