"""cige, its ONNX form, jieba and LAC in turns on the same texts: characters per second by batch size, and ratios.

Text to entities: the development parts of Weibo and CLUENER, the last texts of MSRA's training part, and these cut to
pieces of one length. A ratio is the median of those of rounds in which the programs were timed one after the other, so
that what else the machine does at the time counts for all. With one thread the seconds are those of the processor, with
more they are elapsed: then cige and its ONNX form use all of them, jieba and LAC one, since neither offers more (LAC
leaves Paddle's number of threads at one). Each program has a process to itself; jieba reads text by text, whatever the
batch size. cige makes batches of texts of similar length by itself; LAC takes them as they are given, so it is also
given them "sorted" by length. Start-up is that of a process from its begin to its first answer, and the memory is the
most that it had resident; medians of five. Without --lac-python LAC is left out.
"""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Annotated, Any

from benchmarks.data import texts_by_length, texts_of
from benchmarks.measure import in_turns
from benchmarks.parts import programs
from cige.folders.hub import model_folder

TABLES = {
    "rivals": "characters per second (of the processor with one thread)",
    "starts": "from the begin of a process to its first answer",
}
BATCH_SIZES = (1, 32)
LENGTHS = (10, 50, 100, 500)
N_STARTS = 5
FIRST_ANSWERS = {
    "cige": "import sys, cige; cige.load(sys.argv[1])('林晓岚从巴塞尔飞抵南京市长江大桥。')",
    "jieba": "from jieba import posseg; list(posseg.cut('林晓岚从巴塞尔飞抵南京市长江大桥。'))",
    "LAC": "import sys; sys.path.insert(0, sys.argv[1]); import lac_worker; "
    "lac_worker.model().run('林晓岚从巴塞尔飞抵南京市长江大桥。')",
}


def bench(
    *,
    data_dir: Path,
    lac_python: str | None = None,
    model: str | None = None,
    texts: int = 150,
    lengths: Annotated[Sequence[int], "characters of the pieces"] = LENGTHS,
    rounds: int = 5,
    threads: int = 1,
) -> dict[str, Any]:
    """Races, and starts."""
    folder = str(model_folder(model))
    with tempfile.TemporaryDirectory() as work:
        from cige.models.model import LatticeModel
        from cige.runtime.export import export_onnx

        export_onnx(LatticeModel.load(folder), Path(work) / "onnx")
        rivals: list[programs.Program] = [
            programs.alone("cige", folder),
            programs.alone("cige", f"{work}/onnx", name="ONNX"),
            programs.alone("jieba"),
        ]
        starts = {
            "cige": (sys.executable, FIRST_ANSWERS["cige"], folder),
            "ONNX": (sys.executable, FIRST_ANSWERS["cige"], f"{work}/onnx"),
            "jieba": (sys.executable, FIRST_ANSWERS["jieba"]),
        }
        if lac_python is not None:
            lac = programs.lac(lac_python)
            rivals += [lac, programs.sorted_by_length(lac)]
            starts["LAC"] = (lac_python, FIRST_ANSWERS["LAC"], str(programs.LAC_WORKER.parent))
        read = texts_by_length(data_dir, texts, lengths) | {"CLUENER dev": texts_of(data_dir, "cluener", "dev")[:texts]}
        rows = races(rivals, read, n_rounds=rounds, elapsed=threads > 1)
        return {"rivals": rows, "starts": bench_starts(starts)}


def races(
    rivals: Sequence[programs.Program], texts: Mapping[str, Sequence[str]], *, n_rounds: int, elapsed: bool = False
) -> list[dict[str, Any]]:
    """For each kind of text and batch size the characters per second, and how many times as fast the first one is."""
    return [
        {"texts": name, "batch_size": n} | race(rivals, some, batch_size=n, n_rounds=n_rounds, elapsed=elapsed)
        for name, some in texts.items()
        for n in BATCH_SIZES
    ]


def race(
    rivals: Sequence[programs.Program], texts: Sequence[str], *, batch_size: int, n_rounds: int, elapsed: bool
) -> dict[str, float]:
    ways = {rival.name: partial(rival.read, texts, batch_size) for rival in rivals}
    used = {rival.name: rival.processor_seconds for rival in rivals}
    taken = in_turns(ways, n_rounds=n_rounds, processors=used)
    n_chars, ours = sum(map(len, texts)), taken[rivals[0].name]
    row = {name: n_chars / (t.clock if elapsed else t.processor) for name, t in taken.items()}
    for name in list(taken)[1:]:
        ratios = taken[name].ratios(ours, clock=elapsed)
        row |= {f"/ {name}": median(ratios), f"/ {name}, lowest": min(ratios)}
    return row


def bench_starts(commands: Mapping[str, Sequence[str]], *, n_starts: int = N_STARTS) -> list[dict[str, Any]]:
    """A row for each program, which are started in turns; the first start of each is left out."""
    rounds = [{name: first_answer(command) for name, command in commands.items()} for _ in range(n_starts + 1)][1:]
    fields = ("processor seconds", "elapsed seconds", "megabytes")
    return [
        {"program": name} | {field: median(own[name][k] for own in rounds) for k, field in enumerate(fields)}
        for name in commands
    ]


def first_answer(command: Sequence[str]) -> tuple[float, float, float]:
    """Processor seconds, elapsed seconds and most resident megabytes of a process that ends after one answer."""
    begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    # Not getrusage's figure, which begins with that of the process that started this one.
    code = "import sys; exec(sys.argv.pop(1)); print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
    python, program, *arguments = command
    done = subprocess.run([python, "-c", code, program, *arguments], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, time.perf_counter() - begin, int(done.stdout.split()[-1]) / 1024
