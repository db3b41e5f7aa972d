"""A prediction process: seconds from its start to the first answer, peak memory, speed on sentences and on one text.

python benchmarks/bench_predict.py --json predict.json
python benchmarks/bench_predict.py --device cuda --json predict_gpu.json     where there is a GPU
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from typing import Any

from measure import add_device_option, environment, write

SENTENCE = "中国外交部发言人王明在北京表示，罗氏公司将在上海浦东新区设立研究中心。"

# Runs in a process of its own, so that start and memory are those of a user's process.
CHILD = """
import json, resource, sys, time
model, sentence, n_chars, device = sys.argv[1] or None, sys.argv[2], int(sys.argv[3]), sys.argv[4]
from cige import load
ner = load(model, device=device)
ner(sentence)
first = time.time()
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
found = {"first": first, "first_mb": peak()}
n = max(1, n_chars // len(sentence))
begin = time.perf_counter(); sum(1 for _ in ner.pipe([sentence] * n)); seconds = time.perf_counter() - begin
found |= {"sentences_per_second": n / seconds, "sentences_mb": peak()}
begin = time.perf_counter(); ner(sentence * n); seconds = time.perf_counter() - begin
found |= {"long_text_chars_per_second": n * len(sentence) / seconds, "long_text_mb": peak()}
print(json.dumps(found))
"""


def bench_predict(model: str | None, *, n_chars: int, n_rounds: int, device: str = "cpu") -> dict[str, Any]:
    """The best of `n_rounds` processes, each reading `n_chars` characters twice."""
    rounds = []
    for _ in range(n_rounds):
        start = time.time()
        command = [sys.executable, "-c", CHILD, model or "", SENTENCE, str(n_chars), device]
        found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        found["seconds_to_first_answer"] = found.pop("first") - start
        rounds.append(found)
    smaller_is_better = {name for name in rounds[0] if name.endswith("_mb") or name.startswith("seconds")}
    best = {name: (min if name in smaller_is_better else max)(r[name] for r in rounds) for name in rounds[0]}
    n_threads = int(os.environ.get("OMP_NUM_THREADS", 0)) or os.cpu_count() or 1
    return {"environment": environment(threads=n_threads, n_rounds=n_rounds, device=device), **best}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="model folder (default: the bundled model)")
    parser.add_argument("--n-chars", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", help="write the result to this file")
    add_device_option(parser)
    arguments = parser.parse_args()
    result = bench_predict(
        arguments.model, n_chars=arguments.n_chars, n_rounds=arguments.rounds, device=arguments.device
    )
    first, sentences, text = (result[f"{name}_mb"] for name in ("first", "sentences", "long_text"))
    print(f"first answer           after {result['seconds_to_first_answer']:.2f} s, {first:.0f} MB")
    print(f"sentences of {len(SENTENCE)} chars  {result['sentences_per_second']:,.0f} a second, {sentences:.0f} MB")
    print(f"one long text          {result['long_text_chars_per_second']:,.0f} chars a second, {text:.0f} MB")
    write(result, arguments.json)


if __name__ == "__main__":
    main()
