"""A lexicon from 0.3 to 8.8 million words: building, size on disk, loading, memory and speed, and how they grow.

Words, vectors and sentences are made up (parts/make_lexicon.py says how). Vectors are 8 wide here, so that the text of
the largest size is 0.7 GB and not 16: `--width 200` gives the real thing, if the disk has room. Each step runs in a
process of its own, one after another, on one core. A shared machine gives a process less than a core, so the table has
processor seconds beside those on the clock; for matching the fastest of several rounds counts.
"""

import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from benchmarks.measure import in_process, megabytes, report, seconds_of
from benchmarks.parts.make_lexicon import make_sentences, make_words, write_vectors
from cige.lexicon.convert_vectors import build_with_vectors
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.matcher import NativeWalk, Walk
from cige.lexicon.vectors import VectorTable

FLAT = True
SIZES = (300_000, 3_000_000, 8_800_000)
N_SENTENCES = 20_000
N_TOUCHED = 1000
N_DIGITS = 6


def bench(
    *,
    sizes: Annotated[Sequence[int], "numbers of words"] = SIZES,
    width: Annotated[int, "numbers a vector"] = 8,
    rounds: Annotated[int, "passes over the sentences, of which the first and the fastest are kept"] = 7,
    work_dir: Annotated[str | None, "where to make files; by default the system's folder for temporary ones"] = None,
) -> dict[str, Any]:
    """Measure every size; what is made is deleted before the next."""
    found = []
    for n_words in sizes:
        with tempfile.TemporaryDirectory(prefix="cige-lexicon-", dir=work_dir) as name:
            folder = Path(name)
            made = in_process(make, folder, n_words, width) | in_process(build, folder)
            found.append({"n_words": n_words} | made | in_process(load, folder, rounds))
    report("by number of words, and how often the first size's figure is in the last one's", table(found))
    return {"compiled_walk": Walk is NativeWalk, "width": width, "n_rounds": rounds, "sizes": found}


def table(sizes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each figure, a column for each size."""
    return [
        {"figure": key}
        | {f"{size['n_words']:,}": size[key] for size in sizes}
        | {"last / first": sizes[-1][key] / sizes[0][key] if sizes[0][key] else None}
        for key in sizes[0]
        if key not in ("n_words", "n_taken", "checksum")
    ]


def memory() -> dict[str, float]:
    """Megabytes of this process now: `private` its own, `shared` pages of mapped files, one copy for all processes."""
    return {"private": (sizes := megabytes())["RssAnon"], "shared": sizes["RssFile"]}


def make(folder: Path, n_words: int, width: int) -> dict[str, Any]:
    words = make_words(n_words)
    write_vectors(folder / "vectors.txt", words, width=width, n_digits=N_DIGITS)
    (folder / "sentences.txt").write_text("\n".join(make_sentences(words, N_SENTENCES)), encoding="utf-8")
    size = (folder / "vectors.txt").stat().st_size / 1e6
    return {"text_mb": size, "chars_per_word": sum(map(len, words)) / len(words)}


def build(folder: Path) -> dict[str, Any]:
    begin, processor = time.perf_counter(), time.process_time()
    taken: dict[str, tuple[float, float]] = {}

    def on_progress(n_read: int, n_bytes: int) -> None:
        if n_read == n_bytes:
            taken.setdefault("read", (time.perf_counter() - begin, time.process_time() - processor))

    made = build_with_vectors(folder / "vectors.txt", folder / "lexicon", on_progress=on_progress)
    found: dict[str, Any] = {"n_taken": made.n_taken, "build_s": time.perf_counter() - begin}
    found["build_processor_s"] = time.process_time() - processor
    for name, seconds in zip(("read_mb_per_s", "read_mb_per_processor_s"), taken["read"], strict=True):
        found[name] = (folder / "vectors.txt").stat().st_size / 1e6 / seconds
    found["build_peak_mb"] = megabytes()["VmHWM"]
    sizes = {file.name: file.stat().st_size / 1e6 for file in (folder / "lexicon").iterdir()}
    found["index_mb"] = sum(size for name, size in sizes.items() if name.startswith("trie"))
    return found | {"words_mb": sizes["words.txt"] + sizes["offsets.npy"], "vectors_mb": sizes["vectors.npy"]}


def load(folder: Path, n_rounds: int) -> dict[str, Any]:
    sentences = (folder / "sentences.txt").read_text(encoding="utf-8").split("\n")
    size = sum(len(sentence.encode()) for sentence in sentences) / 1e6
    own: dict[str, Any] = {}

    def opened() -> None:
        own["lexicon"] = Lexicon.load(folder / "lexicon")

    def matched() -> None:
        own["n_matches"] = sum(len(own["lexicon"].match(sentence)) for sentence in sentences)

    found = {"python_mb": sum(memory().values()), "load_s": seconds_of(opened)[0]}
    found |= {f"loaded_{kind}_mb": size for kind, size in memory().items()}
    rounds = [seconds_of(matched)[0] for _ in range(n_rounds)]
    used = memory()
    found |= {f"used_{kind}_mb": size for kind, size in used.items()}
    vectors = VectorTable.load(folder / "lexicon")
    rows = random.Random(0).sample(range(len(vectors)), min(N_TOUCHED, len(vectors)))
    checksum = float(vectors.vectors[np.sort(rows)].astype(np.float32).sum())
    found |= {"vectors_shared_mb": memory()["shared"] - used["shared"], "first_mb_per_s": size / rounds[0]}
    return found | {"match_mb_per_s": size / min(rounds), "n_matches": own["n_matches"], "checksum": checksum}
