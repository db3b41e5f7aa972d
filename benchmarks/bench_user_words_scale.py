"""A million words of a user: adding them, memory, one more word, and prediction; and what forced words cost.

    OMP_NUM_THREADS=1 python benchmarks/bench_user_words_scale.py --json user_words.json

Words are made of a surname and two or three characters, have one of four labels and are not in the bundled lexicon; a
few of them are in the texts. Each number of words is measured in a process of its own, since memory that was given back
may be used again. Predictions with and without the words take turns (`measure.in_turns`); beside them stands a lexicon
of only those words that are in the texts, since a word in a text costs the same however many others there are.
"""

from __future__ import annotations

import gc
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measure import environment, in_turns, options, report, write

import cige
from cige.json_text import to_json

SIZES = (10_000, 100_000, 1_000_000)
LABELS = ("PER", "COMPANY", "PRODUCT", "职位")  # the last is a type that the model does not know
SURNAMES = "赵钱孙李周吴郑王冯陈褚卫蒋沈韩杨朱秦尤许何吕施张孔曹严华金魏陶姜"
FRAMES = (
    "{}在北京的会议上介绍了新产品。",
    "记者从{}处获悉，今年前三季度的销售额比去年同期增长了两成。",
    "今天天气很好。",
)
FRAMES += ("今天天气很好。", "上海市人民政府与{}签订了合作协议，{}任负责人。")
N_ADDED = 1000


def made_words(n: int) -> dict[str, str]:
    """Distinct words of three or four characters with a label."""
    rng, words = random.Random(0), {}
    while len(words) < n:
        given = "".join(chr(rng.randrange(0x4E00, 0x9F00)) for _ in range(rng.choice((2, 2, 3))))
        words[rng.choice(SURNAMES) + given] = rng.choice(LABELS)
    return words


def made_texts(words: list[str], n: int = 60) -> list[str]:
    rng = random.Random(1)
    return ["".join(frame.replace("{}", rng.choice(words)) for frame in rng.sample(FRAMES, 3)) for _ in range(n)]


def resident_mb() -> float:
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) / 1024


def seconds(run: Callable[[], Any]) -> tuple[float, float]:
    """(on the clock, of the processor)."""
    clock, processor = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - clock, time.process_time() - processor


def measured(n_words: int, n_rounds: int, *, from_file: bool) -> dict[str, Any]:
    """Everything about one number of words, in this process."""
    plain, ner, few = cige.load(), cige.load(), cige.load()
    words = made_words(n_words)
    texts = made_texts(list(words))
    few.lexicon.add({word: label for word, label in words.items() if any(word in text for text in texts)})
    extra = [f"新词{k}号" for k in range(N_ADDED)]
    one = next(iter(words))
    for each in (plain, ner, few):
        each(texts)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "words.tsv"
        path.write_text("".join(f"{word}\t{label}\n" for word, label in words.items()), encoding="utf-8")
        gc.collect()
        before = resident_mb()
        added = seconds(lambda: ner.lexicon.add_file(path) if from_file else ner.lexicon.add(words))
        gc.collect()
    memory = resident_mb() - before
    first = seconds(lambda: ner.lexicon.add("另一个新词"))[0]
    more = [seconds(lambda word=word: ner.lexicon.add(word))[0] for word in extra]  # type: ignore[misc]
    relabelled = seconds(lambda: ner.lexicon.add(one, label="PRODUCT"))[0]
    removed = seconds(lambda: ner.lexicon.remove(one))[0]
    own = ["罗氏婴儿配方粉"]
    ways = {
        "plain": lambda: [plain(text) for text in texts],
        "with": lambda: [ner(text) for text in texts],
        "few": lambda: [few(text) for text in texts],
        "plain_call": lambda: [plain(text, words=own) for text in texts],
        "with_call": lambda: [ner(text, words=own) for text in texts],
    }
    timings = {name: timing.processor for name, timing in in_turns(ways, n_rounds=n_rounds).items()}
    return {
        "words": n_words,
        "from": "file" if from_file else "dict",
        "added_s": added[0],
        "added_processor_s": added[1],
        "resident_mb": memory,
        "one_more_ms": 1e3 * first,
        "mean_of_1000_more_ms": 1e3 * sum(more) / len(more),
        "slowest_more_ms": 1e3 * max(more),
        "relabelled_ms": 1e3 * relabelled,
        "removed_ms": 1e3 * removed,
        "predict_ms": 1e3 * timings["plain"] / len(texts),
        "with_words_x": timings["with"] / timings["plain"],
        "with_those_in_texts_x": timings["few"] / timings["plain"],
        "words_of_a_call_x": timings["with_call"] / timings["plain_call"],
    }


def rules(n_rounds: int) -> list[dict[str, Any]]:
    """How much longer prediction takes with one word of a mode in the text than without."""
    word = "阿拉善贺兰草"
    kinds = [("evidence", "COMPANY"), ("evidence", "职位"), ("force", "COMPANY"), ("force", "职位")]
    kinds += [("type", "COMPANY"), ("block", None), ("block_exact", None)]
    rows = []
    for name, frame in (("short", "{}在北京的会议上介绍了新产品。"), ("long", "".join(FRAMES) * 2)):
        text = frame.replace("{}", word)
        ners = {"plain": cige.load()}
        for mode, label in kinds:
            ners[f"{mode} {label or ''}".strip()] = own = cige.load()
            own.lexicon.add(word, label=label, mode=mode)  # type: ignore[arg-type]
        ways = {kind: lambda own=own, text=text: [own(text) for _ in range(100)] for kind, own in ners.items()}
        timings = in_turns(ways, n_rounds=n_rounds)  # type: ignore[arg-type]
        rows += [
            {"text": name, "characters": len(text), "word": kind, "ms": 10 * t.processor, "x": t.processor / plain}
            for kind, t in timings.items()
            if (plain := timings["plain"].processor)
        ]
    return rows


def in_process(*arguments: object) -> Any:
    command = [sys.executable, __file__, "--step", *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    if done.returncode:
        sys.exit(f"step {arguments} failed")
    return json.loads(done.stdout)


def bench_user_words_scale(sizes: tuple[int, ...] = SIZES, *, n_rounds: int = 7) -> dict[str, Any]:
    """Measure every number of words from a dict, the largest from a file too, and the modes of a word."""
    results = [in_process(size, n_rounds, "") for size in sizes] + [in_process(max(sizes), n_rounds, "file")]
    return {
        "environment": environment(threads=1, n_rounds=n_rounds),
        "sizes": results,
        "modes": in_process("modes", n_rounds, ""),
    }


def main() -> None:
    if sys.argv[1:2] == ["--step"]:
        size, n_rounds, source = sys.argv[2:]
        found = rules(int(n_rounds)) if size == "modes" else measured(int(size), int(n_rounds), from_file=bool(source))
        print(to_json(found))
        return
    parser = options(__doc__, n_rounds=7, n_threads=None)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="WORDS")
    arguments = parser.parse_args()
    result = bench_user_words_scale(tuple(arguments.sizes), n_rounds=arguments.rounds)
    report("Words of a user (times of adding on the clock, of prediction of the processor)", result["sizes"])
    report("One word in a text, by mode", result["modes"])
    write(result, arguments.json)


if __name__ == "__main__":
    main()
