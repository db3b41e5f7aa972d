"""How long lines are divided into windows: F1 and time by setting, on development sentences that are joined to lines.

Lines have at least each of the lengths (with 1, each sentence is a line), once with all of their characters and once
with only letters, digits and Chinese characters, in which there is no place to cut. F1 is that of names (PER, LOC and
ORG with their kinds counted as them), the mean over sets in per cent, and that of CMNER alone, whose posts have 139
characters on average. Times are processor seconds of reading the lines of MSRA, as a ratio to the first
setting: the median of those of rounds in which the settings took turns.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Annotated, Any
from unittest import mock

from benchmarks.data import Judge, scored_sets, tagger
from benchmarks.measure import environment, in_turns
from cige.api import NER
from cige.data.sentence import Sentence, Span
from cige.entities.scores import score
from cige.recipes.shipped import TODAY
from cige.runtime.native import n_threads
from cige.tagging import windows as tagging_windows
from cige.text import windows
from cige.training.sources import Source

TABLES = {"settings": "F1 of names in per cent by length of the lines, and time"}
LENGTHS = (1, 201, 500)
BATCH_SIZE = 32
POSTS = "cmner"
READABLE = re.compile(r"[0-9A-Za-z\u3400-\u9fff]")
SENTENCES, CLAUSES = windows.CUTS


def setting(whole: int, core: int, context: int, *cuts: windows.Cut) -> dict[str, Any]:
    return {"whole": whole, "core": core, "context": context, "cuts": cuts}


SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "256, sentences from 1/2": setting(256, 108, 12, SENTENCES._replace(at_least=1 / 2)),
    "256": setting(256, 108, 12, *windows.CUTS),
    "200": setting(200, 108, 12, *windows.CUTS),
    "160": setting(160, 108, 12, *windows.CUTS),
    "128": setting(128, 108, 12, *windows.CUTS),
    "200, sentences alone": setting(200, 108, 12, SENTENCES),
    "200, all earlier": setting(200, 108, 12, SENTENCES._replace(at_least=1 / 4), CLAUSES._replace(at_least=1 / 2)),
    "200, core 72": setting(200, 72, 12, *windows.CUTS),
    "200, context 24": setting(200, 108, 24, *windows.CUTS),
    "200, context 6": setting(200, 108, 6, *windows.CUTS),
}
"""By the longest line that is one window; the core is 108 and the context 12 where nothing else is said."""


def bench(
    *,
    data_dir: Path,
    model: str | None = None,
    lengths: Annotated[Sequence[int], "characters that a line has at least"] = LENGTHS,
    rounds: int = 9,
) -> dict[str, Any]:
    """A row for each setting; the ratios are to the first one."""
    ner = tagger(model)
    sets = scored_sets(TODAY, data_dir)
    judges = {source.name: Judge(source, ner.labels) for source in sets}
    rows: dict[str, dict[str, Any]] = {name: {"setting": name} for name in SETTINGS}
    for length in lengths:
        for column, only in ((f"{length}", None), (f"{length}, no marks", READABLE)):
            lines = {s.name: lines_of(s, judges[s.name], length, only) for s in sets}
            for name, own in SETTINGS.items():
                with read_with(**own):
                    found = {s: f1(ner, judges[s], *of_set) for s, of_set in lines.items()}
                rows[name][column] = fmean(f for f in found.values() if f is not None)
                if only is None:
                    rows[name][f"{length}, {POSTS}"] = found.get(POSTS)
    msra = next(source for source in sets if source.name == "msra")
    first, *others = SETTINGS
    for length, only in [*((n, None) for n in lengths), (lengths[-1], READABLE)]:
        texts, _ = lines_of(msra, judges["msra"], length, only)
        taken = in_turns({name: partial(read, ner, texts, own) for name, own in SETTINGS.items()}, n_rounds=rounds)
        column = f"time, {length}" + (", no marks" if only else "")
        rows[first][column] = 1.0
        for name in others:
            rows[name][column] = median(taken[name].ratios(taken[first]))
    facts = {"environment": environment(threads=n_threads(), n_rounds=rounds)}
    return facts | {"precision": getattr(ner.model, "precision", None), "settings": list(rows.values())}


@contextmanager
def read_with(cuts: Sequence[windows.Cut], **sizes: int) -> Iterator[None]:
    split: Callable[[str], list[windows.Window]] = partial(windows.split_windows, **sizes)
    with mock.patch.object(tagging_windows, "split_windows", split), mock.patch.object(windows, "CUTS", cuts):
        yield


def read(ner: NER, texts: Sequence[str], own: Mapping[str, Any]) -> None:
    with read_with(**own):
        list(ner.pipe(texts, batch_size=BATCH_SIZE))


def f1(ner: NER, judge: Judge, texts: Sequence[str], gold: Sequence[list[Span]]) -> float | None:
    """In per cent, or None if there are no names."""
    if not any(gold):
        return None
    found = ner.pipe(texts, batch_size=BATCH_SIZE, labels=ner.labels)
    return 100 * score(gold, [judge.names(judge.spans(entities)) for entities in found]).overall.f1


def lines_of(
    source: Source, judge: Judge, length: int, only: re.Pattern[str] | None
) -> tuple[list[str], list[list[Span]]]:
    """Development sentences joined to lines of at least `length` characters, of which some are left out, and names."""
    texts, names = [""], [[]]  # type: tuple[list[str], list[list[Span]]]
    for sentence, spans in zip(source.dev, judge.gold(source.dev), strict=True):
        if len(texts[-1]) >= length:
            texts.append("")
            names.append([])
        text, own = shortened(sentence, judge.names(spans), only)
        names[-1] += [span.shifted(len(texts[-1])) for span in own]
        texts[-1] += text
    return texts, names


def shortened(sentence: Sentence, names: Sequence[Span], only: re.Pattern[str] | None) -> tuple[str, list[Span]]:
    """The characters of a sentence that `only` matches, all if it is None, and the names over them."""
    if only is None:
        return sentence.text, list(names)
    before = [0]  # before each character: how many remain
    for char in sentence.text:
        before.append(before[-1] + bool(only.match(char)))
    text = "".join(char for char in sentence.text if only.match(char))
    moved = [Span(before[s.start], before[s.end], s.label) for s in names]
    return text, [span for span in moved if span.start < span.end]
