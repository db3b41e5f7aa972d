"""Word matching on real sentences, one at a time: `Lexicon.match`, and the fastest library known beside it.

Sentences are those of MSRA's training part, the lexicon is jieba's (337,384 words), on one core. "daachorse" (where it
is installed) is an Aho-Corasick automaton in memory, its bare call: unsorted Python tuples. The ways take turns, and
the fastest round of each counts: other work on the machine only ever slows one down.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from benchmarks.data import texts_of
from benchmarks.measure import in_turns, report
from cige.lexicon.lexicon import Lexicon


def bench(
    *, data_dir: Path, n_sentences: Annotated[int, "of MSRA's training part"] = 20_000, rounds: int = 15
) -> dict[str, Any]:
    """Megabytes (UTF-8) a second and microseconds a sentence of each way."""
    lexicon = Lexicon.from_file(data_dir / "lexicon" / "jieba.txt.xz")
    sentences = texts_of(data_dir, "msra", "train")[:n_sentences]
    megabytes = sum(len(sentence.encode("utf-8")) for sentence in sentences) / 1e6
    matchers: dict[str, Callable[[str], Any]] = {"lexicon": lexicon.match}
    with suppress(ImportError):
        daachorse = import_module("daachorse").CharwiseDoubleArrayAhoCorasick(list(lexicon))
        matchers["daachorse"] = daachorse.find_overlapping

    def each(match: Callable[[str], Any]) -> None:
        for sentence in sentences:
            match(sentence)

    taken = in_turns({name: partial(each, match) for name, match in matchers.items()}, n_rounds=rounds)
    result: dict[str, Any] = {
        "n_words": len(lexicon),
        "n_sentences": len(sentences),
        "megabytes": round(megabytes, 2),
        "n_matches": sum(len(lexicon.match(sentence)) for sentence in sentences),
    }
    for name, timing in taken.items():
        best = min(timing.clocks)
        result[f"{name}_mb_per_s"] = round(megabytes / best, 1)
        result[f"{name}_us_per_sentence"] = round(best / len(sentences) * 1e6, 2)
    report("fastest rounds", [result])
    return result
