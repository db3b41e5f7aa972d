"""A million words of a user: adding them, memory, one more word, and prediction; and what forced words cost.

Words are made of a surname and two or three characters, have one of four labels and are not in the bundled lexicon; a
few of them are in the texts. Each number of words is measured in a process of its own, since memory that was given back
may be used again. Predictions with and without the words take turns; beside them stands a lexicon of only those words
that are in the texts, since a word in a text costs the same however many others there are.
"""

import gc
import random
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import cige
from benchmarks.measure import in_process, in_turns, megabytes, seconds_of

TABLES = {
    "sizes": "Words of a user (times of adding on the clock, of prediction of the processor)",
    "modes": "One word in a text, by mode",
}
SIZES = (10_000, 100_000, 1_000_000)
LABELS = ("PER", "COMPANY", "PRODUCT", "职位")  # the last is a type that the model does not know
SURNAMES = "赵钱孙李周吴郑王冯陈褚卫蒋沈韩杨朱秦尤许何吕施张孔曹严华金魏陶姜"
FRAMES = (
    "{}在北京的会议上介绍了新产品。",
    "记者从{}处获悉，今年前三季度的销售额比去年同期增长了两成。",
    *("今天天气很好。", "今天天气很好。", "上海市人民政府与{}签订了合作协议，{}任负责人。"),
)
N_ADDED = 1000


def bench(*, sizes: Annotated[Sequence[int], "numbers of words"] = SIZES, rounds: int = 7) -> dict[str, Any]:
    """Every number of words from a dict, the largest from a file too, and the modes of a word."""
    cases = [*((size, False) for size in sizes), (max(sizes), True)]
    found = [in_process(measured, size, rounds, from_file) for size, from_file in cases]
    return {"sizes": found, "modes": in_process(modes, rounds)}


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


def measured(n_words: int, n_rounds: int, from_file: bool) -> dict[str, Any]:
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
        before = megabytes()["VmRSS"]
        added = seconds_of(lambda: ner.lexicon.add_file(path) if from_file else ner.lexicon.add(words))
        gc.collect()
    memory = megabytes()["VmRSS"] - before
    first = seconds_of(lambda: ner.lexicon.add("另一个新词"))[0]
    more = [seconds_of(partial(ner.lexicon.add, word))[0] for word in extra]
    relabelled = seconds_of(lambda: ner.lexicon.add(one, label="PRODUCT"))[0]
    removed = seconds_of(lambda: ner.lexicon.remove(one))[0]
    own = ["罗氏婴儿配方粉"]
    ways = {
        "plain": lambda: [plain(text) for text in texts],
        "with": lambda: [ner(text) for text in texts],
        "few": lambda: [few(text) for text in texts],
        "plain_call": lambda: [plain(text, words=own) for text in texts],
        "with_call": lambda: [ner(text, words=own) for text in texts],
    }
    took = {name: timing.processor for name, timing in in_turns(ways, n_rounds=n_rounds).items()}
    row = {"words": n_words, "from": "file" if from_file else "dict"}
    row |= dict(zip(("added_s", "added_processor_s"), added, strict=True))
    row |= {"resident_mb": memory, "one_more_ms": 1e3 * first, "mean_of_1000_more_ms": 1e3 * fmean(more)}
    row |= {"slowest_more_ms": 1e3 * max(more), "relabelled_ms": 1e3 * relabelled, "removed_ms": 1e3 * removed}
    row |= {"predict_ms": 1e3 * took["plain"] / len(texts), "with_words_x": took["with"] / took["plain"]}
    row["with_those_in_texts_x"] = took["few"] / took["plain"]
    return row | {"words_of_a_call_x": took["with_call"] / took["plain_call"]}


def modes(n_rounds: int) -> list[dict[str, Any]]:
    """How much longer prediction takes with one word of a mode in the text than without."""
    kinds: list[tuple[Any, str | None]] = [(mode, label) for mode in ("evidence", "force") for label in LABELS[1::2]]
    kinds += [("type", "COMPANY"), ("block", None), ("block_exact", None)]
    rows = []
    for name, frame in (("short", FRAMES[0]), ("long", "".join(FRAMES) * 2)):
        text = frame.replace("{}", "阿拉善贺兰草")
        ners = {"plain": cige.load()}
        for mode, label in kinds:
            ners[f"{mode} {label or ''}".strip()] = own = cige.load()
            own.lexicon.add("阿拉善贺兰草", label=label, mode=mode)
        ways = {kind: lambda own=own, text=text: [own(text) for _ in range(100)] for kind, own in ners.items()}
        timings = {kind: t.processor for kind, t in in_turns(ways, n_rounds=n_rounds).items()}
        facts = {"text": name, "characters": len(text)}
        rows += [facts | {"word": kind, "ms": 10 * t, "x": t / timings["plain"]} for kind, t in timings.items()]
    return rows
