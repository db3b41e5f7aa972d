"""Training steps with freed memory kept by the process, as `cige train` keeps it, and given back, as malloc does.

  python benchmarks/bench_kept.py --json kept.json
  python benchmarks/bench_kept.py flat dcsan --rounds 3

A step is forward and backward of a batch of 16 made-up sentences with the shape of Weibo's lattices, the widths of each
model's Weibo recipe, one thread. Each way runs in processes of its own, turn by turn; a process counts its fastest pass
over four batches, of these the median is shown. Processor seconds, those of the system included.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from statistics import median
from typing import Any

from bench_models import make_batches, make_tagger
from measure import environment, options, report, use_threads, write

from cige.json_text import to_json
from cige.models.registry import ARCHITECTURES
from cige.nn.memory import keep_freed_memory

N_PASSES = 5
CHILD = "--one-process"


def run_passes(name: str, *, keep: bool, n_passes: int = N_PASSES) -> dict[str, float]:
    """In a process of its own: processor seconds a step, and the most memory that it held, in bytes."""
    if keep and not keep_freed_memory():
        sys.exit("the allocator of this machine cannot keep freed memory, or MALLOC_* in the environment forbids it")
    use_threads(1)
    tagger, batches = make_tagger(name).train(), make_batches(64)[16]
    taken = []
    for _ in range(n_passes + 1):
        before = resource.getrusage(resource.RUSAGE_SELF)
        for batch in batches:
            tagger.zero_grad(set_to_none=True)
            tagger(batch).emissions.square().mean().backward()
        after = resource.getrusage(resource.RUSAGE_SELF)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return {"seconds": min(taken[1:]) / len(batches), "bytes": after.ru_maxrss * 1024}


def in_process(name: str, way: str) -> dict[str, float]:
    command = [sys.executable, __file__, CHILD, name, way]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=os.environ)
    return dict(json.loads(done.stdout))


def bench_kept(names: list[str], *, n_rounds: int) -> dict[str, Any]:
    """A row a model: milliseconds a step and megabytes, each way, as a JSON-ready dict."""
    rows = []
    for name in names:
        taken: dict[str, list[dict[str, float]]] = {"given back": [], "kept": []}
        for _ in range(n_rounds):
            for way, found in taken.items():
                found.append(in_process(name, way))
        milliseconds = {way: median(x["seconds"] for x in found) * 1e3 for way, found in taken.items()}
        rows.append(
            {
                "model": name,
                **{f"{way}, ms": ms for way, ms in milliseconds.items()},
                "times as fast": milliseconds["given back"] / milliseconds["kept"],
                **{f"{way}, MB": median(x["bytes"] for x in found) / 1e6 for way, found in taken.items()},
            }
        )
    return {"environment": environment(threads=1, n_rounds=n_rounds), "models": rows}


def main() -> None:
    if sys.argv[1:2] == [CHILD]:
        name, way = sys.argv[2:]
        print(to_json(run_passes(name, keep=way == "kept")))
        return
    known = sorted(name for name in ARCHITECTURES if "bert" not in name)
    parser = options(__doc__, n_rounds=3, n_threads=None)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"some of {', '.join(known)} (default: all)")
    args = parser.parse_args()
    if unknown := sorted(set(args.models) - set(known)):
        parser.error(f"no model {', '.join(unknown)}; expected some of {', '.join(known)}")
    result = bench_kept(args.models or known, n_rounds=args.rounds)
    report("a training step, processor milliseconds, and the most memory held", result["models"])
    write(result, args.json)


if __name__ == "__main__":
    main()
