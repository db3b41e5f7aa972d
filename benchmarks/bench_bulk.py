"""Memory that each further process of `cige annotate` adds, with the lexicon and the weights mapped.

Processes load the bundled model and annotate the same texts. Of each, three figures from /proc/PID/smaps_rollup: what
is resident, its share of it (a page that k processes map counts 1/k for each), and what is its own alone. The last is
what one more process costs.

  cige bench bulk                  8 processes
  cige bench bulk --processes 2 --texts 500
"""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

from measure import environment, options, report, write

from cige.bulk.annotator import Annotator, AnnotatorSettings

FIELDS = {"Rss": "resident_mb", "Pss": "share_mb", "Private_Clean": "own_mb", "Private_Dirty": "own_mb"}
SENTENCE = "罗氏公司总裁林晓岚{}从巴塞尔飞抵南京市长江大桥，{}万人参观了上海的展览。"


def memory(pid: int | str = "self") -> dict[str, float]:
    """Megabytes of a process by the names that FIELDS has."""
    found = dict.fromkeys(FIELDS.values(), 0.0)
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(":")
        if name in FIELDS:
            found[FIELDS[name]] += int(value.split()[0]) / 1024
    return found


def bench_bulk(*, n_processes: int, n_texts: int) -> dict[str, Any]:
    """Medians over the processes: with Python and NumPy alone, with the model open, and after the texts were read."""
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    for _ in range(n_processes):
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, n_texts), daemon=True)
        process.start()
        pipes.append(ours)
        processes.append(process)
    cases = []
    for stage in ("imported", "model open", f"{n_texts:,} texts read"):
        for pipe in pipes:
            pipe.recv()  # every process is there before any is measured
        found = [memory(process.pid) for process in processes]
        cases.append({"stage": stage} | {name: median(one[name] for one in found) for name in found[0]})
        for pipe in pipes:
            pipe.send("go on")
    for process in processes:
        process.join()
    return {"n_processes": n_processes, "cases": cases}


def _work(pipe: Connection, n_texts: int) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    import cige.api
    import cige.runtime.native_model  # noqa: F401

    pipe.send("imported")
    pipe.recv()
    annotator = Annotator.open(AnnotatorSettings())
    pipe.send("open")
    pipe.recv()
    annotator.annotate([SENTENCE.format(chr(0x4E00 + k), chr(0x5000 + k)) for k in range(n_texts)])
    pipe.send("read")
    pipe.recv()


def main() -> None:
    parser = options(__doc__, n_rounds=1, n_threads=None)
    parser.add_argument("--processes", type=int, default=8, metavar="N", help="(default: 8)")
    parser.add_argument("--texts", type=int, default=500, metavar="N", help="texts that each reads (default: 500)")
    args = parser.parse_args()
    found = bench_bulk(n_processes=args.processes, n_texts=args.texts)
    report(f"Megabytes of each of {found['n_processes']} processes (medians)", found["cases"])
    write(environment(threads=1, n_rounds=args.rounds) | found, args.json)


if __name__ == "__main__":
    main()
