"""Speed of word matching on real sentences, one at a time: `Lexicon.match`, and the fastest library known beside it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from measure import environment, write

from cige.json_text import to_json
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.text_file import read_lines


def bench_match(data_dir: str | Path, *, n_sentences: int = 20_000, n_rounds: int = 15) -> dict[str, Any]:
    """Match real sentences with the jieba lexicon (337,384 words) on one core.

    The ways take turns, and the fastest round of each counts: other work on the machine only ever slows one down.

    Args:
        data_dir: holds lexicon/jieba.txt.xz and ner/msra/train.bmes.
        n_sentences: how many sentences of MSRA's training part are matched in a round.
        n_rounds: rounds of each way.

    Returns:
        n_words, n_sentences, megabytes (UTF-8), n_matches; and for "lexicon" (`Lexicon.match`: any str to sorted int32
        rows) and, where it is installed, "daachorse" (an Aho-Corasick automaton in memory, its bare call: unsorted
        Python tuples) megabytes a second and microseconds a sentence.
    """
    data_dir = Path(data_dir)
    lexicon = Lexicon.from_file(data_dir / "lexicon" / "jieba.txt.xz")
    sentences = list(islice(_sentences(data_dir / "ner" / "msra" / "train.bmes"), n_sentences))
    n_bytes = sum(len(sentence.encode("utf-8")) for sentence in sentences)
    ways: dict[str, Callable[[str], Any]] = {"lexicon": lexicon.match}
    with suppress(ImportError):
        ways["daachorse"] = import_module("daachorse").CharwiseDoubleArrayAhoCorasick(list(lexicon)).find_overlapping
    seconds = dict.fromkeys(ways, float("inf"))
    for _ in range(n_rounds):
        for name, match in ways.items():
            begin = time.perf_counter()
            for sentence in sentences:
                match(sentence)
            seconds[name] = min(seconds[name], time.perf_counter() - begin)
    result: dict[str, Any] = {
        "n_words": len(lexicon),
        "n_sentences": len(sentences),
        "megabytes": round(n_bytes / 1e6, 2),
        "n_matches": sum(len(lexicon.match(sentence)) for sentence in sentences),
    }
    for name, best in seconds.items():
        result[f"{name}_mb_per_s"] = round(n_bytes / 1e6 / best, 1)
        result[f"{name}_us_per_sentence"] = round(best / len(sentences) * 1e6, 2)
    return result


def _sentences(path: Path) -> Iterator[str]:
    chars: list[str] = []
    for _, raw in read_lines(path):
        if raw:
            chars.append(raw.decode("utf-8")[0])  # `character<blank>label`
        elif chars:
            yield "".join(chars)
            chars.clear()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", required=True, help="folder with lexicon/ and ner/")
    parser.add_argument("--n-sentences", type=int, default=20_000)
    parser.add_argument("--n-rounds", type=int, default=15)
    parser.add_argument("--json", metavar="FILE", help="write the result to this file")
    args = parser.parse_args()
    result = bench_match(args.data_dir, n_sentences=args.n_sentences, n_rounds=args.n_rounds)
    print(to_json(result, indent=1))
    write({"environment": environment(threads=1, n_rounds=args.n_rounds), **result}, args.json)


if __name__ == "__main__":
    main()
