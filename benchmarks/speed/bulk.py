"""Memory of each further process of `cige annotate`, with the lexicon and the weights mapped.

Processes load the bundled model and annotate the same texts. Of each, three figures from /proc/PID/smaps_rollup: what
is resident, its share of it (a page that k processes map counts 1/k for each), and what is its own alone. The last is
what one more process costs.
"""

import multiprocessing
import os
import tempfile
from multiprocessing.connection import Connection
from statistics import median
from typing import Annotated, Any

from benchmarks.measure import in_process, megabytes
from benchmarks.parts.make_lexicon import make_sentences, make_words
from cige.bulk.annotator import Annotator, AnnotatorSettings
from cige.lexicon.base_words import BaseWords
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.word_blob import WordBlob

TABLES = {"cases": "Megabytes of each of {n_processes} processes (medians)"}
FLAT = True
FIELDS = {"resident_mb": ("Rss",), "share_mb": ("Pss",), "own_mb": ("Private_Clean", "Private_Dirty")}
SENTENCE = "罗氏公司总裁林晓岚{}从巴塞尔飞抵南京市长江大桥，{}万人参观了上海的展览。"


def bench(
    *,
    processes: int = 8,
    texts: Annotated[int, "that each reads"] = 500,
    lexicon: Annotated[
        str | None, "folder of a lexicon that is opened and looked up in place of the bundled model"
    ] = None,
    make_lexicon: Annotated[int | None, "make a lexicon of so many words and measure it"] = None,
) -> dict[str, Any]:
    """Medians over the processes: with Python and NumPy alone, with the model open, and after the texts were read."""
    with tempfile.TemporaryDirectory() as folder:
        if make_lexicon:
            lexicon = f"{folder}/lexicon"
            in_process(save_lexicon, lexicon, make_lexicon)  # which needs the memory of building
        found = {"n_processes": processes, "cases": _stages(processes, texts, lexicon)}
        return found | ({"n_words": len(Lexicon.load(lexicon))} if lexicon else {})


def save_lexicon(folder: str, n_words: int) -> None:
    Lexicon(base=BaseWords.build(WordBlob.from_words(make_words(n_words)), None)).save(folder)


def _stages(n_processes: int, n_texts: int, lexicon: str | None) -> list[dict[str, Any]]:
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(n_processes)]
    workers = [context.Process(target=_work, args=(end, n_texts, lexicon), daemon=True) for _, end in pipes]
    for worker in workers:
        worker.start()
    cases: list[dict[str, Any]] = []
    for stage in ("imported", "lexicon open" if lexicon else "model open", f"{n_texts:,} texts read"):
        for pipe, _ in pipes:
            pipe.recv()  # every process is there before any is measured
        sizes = [megabytes(worker.pid or 0, "smaps_rollup") for worker in workers]
        rows = {key: median(sum(size[x] for x in fields) for size in sizes) for key, fields in FIELDS.items()}
        cases.append({"stage": stage} | rows)
        for pipe, _ in pipes:
            pipe.send("go on")
    for worker in workers:
        worker.join()
    return cases


def _work(pipe: Connection, n_texts: int, lexicon: str | None) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    import cige.api
    import cige.runtime.native_model  # noqa: F401

    def reached(stage: str) -> None:
        pipe.send(stage)
        pipe.recv()

    reached("imported")
    if lexicon:
        words = Lexicon.load(lexicon)
        reached("open")
        for text in make_sentences(words.words, n_texts):
            words.match(text)
    else:
        annotator = Annotator.open(AnnotatorSettings())
        reached("open")
        annotator.annotate([SENTENCE.format(chr(0x4E00 + k), chr(0x5000 + k)) for k in range(n_texts)])
    reached("read")
