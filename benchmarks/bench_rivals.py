"""cige, its ONNX form, jieba and LAC in turns on the same texts: characters per second by batch size, and ratios.

    OMP_NUM_THREADS=1 python benchmarks/bench_rivals.py --data-dir DATA --lac-python lac/bin/python --json rivals.json
    python benchmarks/bench_rivals.py --data-dir DATA --threads 2       # two threads, elapsed time

Text to entities: Weibo's development part, the last texts of MSRA's training part, and these cut to pieces of one
length. A ratio is the median of those of rounds in which the programs were timed one after the other, so that what
else the machine does at the time counts for all. With one thread the seconds are those of the processor, with more
they are elapsed. jieba reads text by text, whatever the batch size. Start-up is that of a process of its own, from
its begin to its first answer, and the memory is the most that it had resident; medians of five. Without --lac-python
LAC is left out; benchmarks/lac_worker.py says how its environment is made.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Protocol

import peers
from measure import add_data_option, environment, options, report, use_threads, write

from cige.data import read_sentences
from cige.folders.hub import model_folder

BATCH_SIZES = (1, 32)
LENGTHS = (10, 50, 100, 500)
N_STARTS = 5
FIRST_ANSWERS = {
    "cige": "import sys, cige; cige.load(sys.argv[1])('林晓岚从巴塞尔飞抵南京市长江大桥。')",
    "jieba": "from jieba import posseg; list(posseg.cut('林晓岚从巴塞尔飞抵南京市长江大桥。'))",
    "LAC": "import sys; sys.path.insert(0, sys.argv[1]); import lac_worker; "
    "lac_worker.model().run('林晓岚从巴塞尔飞抵南京市长江大桥。')",
}


class Rival(Protocol):
    name: str

    def read(self, texts: Sequence[str], batch_size: int) -> Any: ...

    def processor_seconds(self) -> float: ...


def texts_by_name(data_dir: Path, *, n_texts: int, lengths: Sequence[int]) -> dict[str, list[str]]:
    """Texts as they are, and parts of MSRA's of each length."""
    weibo = [s.text for s in read_sentences(data_dir / "ner/weibo/dev.bmes")][:n_texts]
    msra = [s.text for s in read_sentences(data_dir / "ner/msra/train.bmes")[-n_texts:]]
    joined = "".join(msra)
    cut = {f"{n} characters": [joined[k : k + n] for k in range(0, len(joined) - n + 1, n)] for n in lengths}
    return {"Weibo dev": weibo, "MSRA": msra} | cut


def race(
    rivals: Sequence[Rival], texts: Sequence[str], *, batch_size: int, n_rounds: int, elapsed: bool = False
) -> dict[str, float]:
    """Characters per second of each, and how many times as fast the first is as each other; one round warms up."""
    rounds = []
    for _ in range(n_rounds + 1):
        taken = []
        for rival in rivals:
            seconds = time.perf_counter if elapsed else rival.processor_seconds
            begin = seconds()
            rival.read(texts, batch_size)
            taken.append(seconds() - begin)
        rounds.append(taken)
    n_chars = sum(map(len, texts))
    row = {rival.name: n_chars / median(taken[k] for taken in rounds[1:]) for k, rival in enumerate(rivals)}
    for k, rival in enumerate(rivals[1:], 1):
        ratios = [taken[k] / taken[0] for taken in rounds[1:]]
        row |= {f"/ {rival.name}": median(ratios), f"/ {rival.name}, lowest": min(ratios)}
    return row


def bench_rivals(
    rivals: Sequence[Rival], texts: Mapping[str, Sequence[str]], *, n_rounds: int, elapsed: bool = False
) -> list[dict[str, Any]]:
    """A row for each kind of text and batch size."""
    return [
        {"texts": name, "batch_size": n, **race(rivals, some, batch_size=n, n_rounds=n_rounds, elapsed=elapsed)}
        for name, some in texts.items()
        for n in BATCH_SIZES
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


def bench_starts(commands: Mapping[str, Sequence[str]], *, n_starts: int = N_STARTS) -> list[dict[str, Any]]:
    """A row for each program, which are started in turns; the first start of each is left out."""
    rounds = [{name: first_answer(command) for name, command in commands.items()} for _ in range(n_starts + 1)][1:]
    fields = ("processor seconds", "elapsed seconds", "megabytes")
    return [
        {"program": name} | {field: median(own[name][k] for own in rounds) for k, field in enumerate(fields)}
        for name in commands
    ]


def main() -> None:
    parser = options(__doc__, n_rounds=5, n_threads=1)
    add_data_option(parser)
    parser.add_argument("--lac-python", metavar="PYTHON", help="interpreter that has LAC")
    parser.add_argument("--model", help="model folder or hub id of cige (default: the bundled model)")
    parser.add_argument("--texts", type=int, default=150, help="of each source (default: %(default)s)")
    parser.add_argument("--lengths", type=int, nargs="*", default=LENGTHS, help="(default: %(default)s)")
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(args.threads)  # for LAC and the processes that start, which inherit it
    use_threads(args.threads)
    texts = texts_by_name(args.data_dir, n_texts=args.texts, lengths=args.lengths)
    folder = str(model_folder(args.model))
    with tempfile.TemporaryDirectory() as work:
        from cige.models.model import LatticeModel
        from cige.runtime.export import export_onnx

        export_onnx(LatticeModel.load(folder), Path(work) / "onnx")
        rivals: list[Rival] = [peers.Cige(folder), peers.Cige(f"{work}/onnx", name="ONNX"), peers.Jieba()]
        starts = {
            "cige": (sys.executable, FIRST_ANSWERS["cige"], folder),
            "ONNX": (sys.executable, FIRST_ANSWERS["cige"], f"{work}/onnx"),
            "jieba": (sys.executable, FIRST_ANSWERS["jieba"]),
        }
        if args.lac_python is not None:
            rivals.append(peers.Lac(args.lac_python))
            starts["LAC"] = (args.lac_python, FIRST_ANSWERS["LAC"], str(Path(__file__).parent))
        rows = bench_rivals(rivals, texts, n_rounds=args.rounds, elapsed=args.threads > 1)
        report(f"characters per {'elapsed' if args.threads > 1 else 'processor'} second", rows)
        started = bench_starts(starts)
        report("from the begin of a process to its first answer", started)
    facts = environment(threads=args.threads, n_rounds=args.rounds)
    write({"environment": facts, "rivals": rows, "starts": started}, args.json)


if __name__ == "__main__":
    main()
