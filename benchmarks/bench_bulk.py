"""Memory that each further process of `cige annotate` adds, with the lexicon and the weights mapped.

Processes load the bundled model and annotate the same texts. Of each, three figures from /proc/PID/smaps_rollup: what
is resident, its share of it (a page that k processes map counts 1/k for each), and what is its own alone. The last is
what one more process costs.

  cige bench bulk                  8 processes
  cige bench bulk --processes 2 --texts 500
  cige bench bulk --make-lexicon 8800000    a lexicon of so many words alone, without a model
  cige bench bulk --lexicon my-lexicon      one that `cige lexicon build` wrote
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

from make_lexicon import make_sentences, make_words
from measure import environment, options, report, write

from cige.bulk.annotator import Annotator, AnnotatorSettings
from cige.errors import CigeError
from cige.lexicon.base_words import BaseWords
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.word_blob import WordBlob

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


def bench_bulk(*, n_processes: int, n_texts: int, lexicon: str | None = None) -> dict[str, Any]:
    """Medians over the processes: with Python and NumPy alone, with the model open, and after the texts were read.

    With a lexicon folder, that is opened and its words are looked up, in place of a model.
    """
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    for _ in range(n_processes):
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, n_texts, lexicon), daemon=True)
        process.start()
        pipes.append(ours)
        processes.append(process)
    cases = []
    for stage in ("imported", "lexicon open" if lexicon else "model open", f"{n_texts:,} texts read"):
        for pipe in pipes:
            pipe.recv()  # every process is there before any is measured
        found = [memory(process.pid) for process in processes]
        cases.append({"stage": stage} | {name: median(one[name] for one in found) for name in found[0]})
        for pipe in pipes:
            pipe.send("go on")
    for process in processes:
        process.join()
    return {"n_processes": n_processes, "cases": cases}


def _work(pipe: Connection, n_texts: int, lexicon: str | None) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    import cige.api
    import cige.runtime.native_model  # noqa: F401

    pipe.send("imported")
    pipe.recv()
    words = annotator = None
    if lexicon:
        words = Lexicon.load(lexicon)
    else:
        annotator = Annotator.open(AnnotatorSettings())
    pipe.send("open")
    pipe.recv()
    if words is not None:
        for text in make_sentences(words.words, n_texts):
            words.match(text)
    if annotator is not None:
        annotator.annotate([SENTENCE.format(chr(0x4E00 + k), chr(0x5000 + k)) for k in range(n_texts)])
    pipe.send("read")
    pipe.recv()


def make_lexicon(folder: str, n_words: int) -> str:
    """Build and save a lexicon of so many words, in a process of its own, which needs the memory of building."""
    process = multiprocessing.get_context("spawn").Process(target=_make_lexicon, args=(folder, n_words))
    process.start()
    process.join()
    if process.exitcode:
        raise CigeError(f"the lexicon of {n_words:,} words was not built (exit code {process.exitcode})")
    return folder


def _make_lexicon(folder: str, n_words: int) -> None:
    Lexicon(base=BaseWords.build(WordBlob.from_words(make_words(n_words)), None)).save(folder)


def main() -> None:
    parser = options(__doc__, n_rounds=1, n_threads=None)
    parser.add_argument("--processes", type=int, default=8, metavar="N", help="(default: 8)")
    parser.add_argument("--texts", type=int, default=500, metavar="N", help="texts that each reads (default: 500)")
    parser.add_argument("--lexicon", metavar="FOLDER", help="measure this lexicon in place of the bundled model")
    parser.add_argument("--make-lexicon", type=int, metavar="N", help="make one of N words and measure it")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lexicon = make_lexicon(f"{folder}/lexicon", args.make_lexicon) if args.make_lexicon else args.lexicon
        found = bench_bulk(n_processes=args.processes, n_texts=args.texts, lexicon=lexicon)
        if lexicon:
            found["n_words"] = len(Lexicon.load(lexicon))
    report(f"Megabytes of each of {found['n_processes']} processes (medians)", found["cases"])
    write(environment(threads=1, n_rounds=args.rounds) | found, args.json)


if __name__ == "__main__":
    main()
