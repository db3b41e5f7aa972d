"""cige and LAC in turns on the same texts: characters per processor second by batch size, and their ratio.

    OMP_NUM_THREADS=1 python benchmarks/bench_rivals.py --data-dir DATA --lac-python lac/bin/python --json rivals.json

One thread, text to entities: Weibo's development part, the last texts of MSRA's training part, and these cut to
pieces of one length. A ratio is the median of those of pairs that were timed one after the other, so that what else
the machine does at the time counts for both. benchmarks/lac_worker.py says how LAC's environment is made.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Protocol

import peers
from measure import add_data_option, environment, options, report, use_threads, write

from cige.data import read_sentences

BATCH_SIZES = (1, 32)
LENGTHS = (10, 50, 100, 500)


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


def race(first: Rival, second: Rival, texts: Sequence[str], *, batch_size: int, n_rounds: int) -> dict[str, float]:
    """Characters per processor second of each, and how many times as fast the first is; one round warms up."""
    rounds = []
    for _ in range(n_rounds + 1):
        taken = []
        for rival in (first, second):
            begin = rival.processor_seconds()
            rival.read(texts, batch_size)
            taken.append(rival.processor_seconds() - begin)
        rounds.append(taken)
    n_chars = sum(map(len, texts))
    speeds = {r.name: n_chars / median(x[k] for x in rounds[1:]) for k, r in enumerate((first, second))}
    ratios = [slow / fast for fast, slow in rounds[1:]]
    return speeds | {"ratio": median(ratios), "lowest ratio": min(ratios)}


def bench_rivals(
    rivals: tuple[Rival, Rival], texts: Mapping[str, Sequence[str]], *, n_rounds: int
) -> list[dict[str, Any]]:
    """A row for each kind of text and batch size."""
    return [
        {"texts": name, "batch_size": n, **race(*rivals, some, batch_size=n, n_rounds=n_rounds)}
        for name, some in texts.items()
        for n in BATCH_SIZES
    ]


def main() -> None:
    parser = options(__doc__, n_rounds=5, n_threads=None)
    add_data_option(parser)
    parser.add_argument("--lac-python", metavar="PYTHON", required=True, help="interpreter that has LAC")
    parser.add_argument("--model", help="model folder or hub id of cige (default: the bundled model)")
    parser.add_argument("--texts", type=int, default=150, help="of each source (default: %(default)s)")
    parser.add_argument("--lengths", type=int, nargs="*", default=LENGTHS, help="(default: %(default)s)")
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"  # for LAC, which inherits it
    use_threads(1)
    texts = texts_by_name(args.data_dir, n_texts=args.texts, lengths=args.lengths)
    rows = bench_rivals((peers.Cige(args.model), peers.Lac(args.lac_python)), texts, n_rounds=args.rounds)
    report("characters per processor second", rows)
    write({"environment": environment(threads=1, n_rounds=args.rounds), "rivals": rows}, args.json)


if __name__ == "__main__":
    main()
