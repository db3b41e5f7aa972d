"""A prediction process: seconds from its start to the first answer, peak memory, speed on sentences and on one text."""

import json
import subprocess
import sys
import time
from typing import Annotated, Any

from benchmarks.measure import environment, report
from cige.runtime.native import n_threads

SENTENCE = "中国外交部发言人王明在北京表示，罗氏公司将在上海浦东新区设立研究中心。"
# Runs in a process of its own, so that start and memory are those of a user's process.
CHILD = """
import json, sys, time
model, sentence, n_chars, device = sys.argv[1] or None, sys.argv[2], int(sys.argv[3]), sys.argv[4]
from cige import load
ner = load(model, device=device)
ner(sentence)
first = time.time()
def peak():  # not getrusage's figure, which begins with that of the process that started this one
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) / 1024
found = {"first": first, "first_mb": peak()}
n = max(1, n_chars // len(sentence))
begin = time.perf_counter(); sum(1 for _ in ner.pipe([sentence] * n)); seconds = time.perf_counter() - begin
found |= {"sentences_per_second": n / seconds, "sentences_mb": peak()}
begin = time.perf_counter(); ner(sentence * n); seconds = time.perf_counter() - begin
found |= {"long_text_chars_per_second": n * len(sentence) / seconds, "long_text_mb": peak()}
print(json.dumps(found))
"""


def bench(
    *,
    model: str | None = None,
    n_chars: Annotated[int, "characters that each reads twice, as sentences and as one text"] = 100_000,
    rounds: Annotated[int, "processes"] = 3,
    device: str = "cpu",
) -> dict[str, Any]:
    """The best of `rounds` processes."""
    found = []
    for _ in range(rounds):
        start = time.time()
        command = [sys.executable, "-c", CHILD, model or "", SENTENCE, str(n_chars), device]
        row = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        found.append(row | {"seconds_to_first_answer": row.pop("first") - start})
    best = {
        name: (min if name.endswith("_mb") or name.startswith("seconds") else max)(row[name] for row in found)
        for name in found[0]
    }
    report("seconds from the start of a process, megabytes at most, and speeds", [best])
    return {"environment": environment(threads=n_threads(), n_rounds=rounds, device=device), **best}
