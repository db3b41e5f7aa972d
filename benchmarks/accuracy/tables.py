"""Entities in tables: how many are right when cells are set apart by tabs or spaces, and how many with commas.

Rows of two to six cells are made from the entities of the development sentences of MSRA and CLUENER and from cells that
hold none (numbers, dates, plain words).
"""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from benchmarks.data import percent
from cige.api import load
from cige.data.registry import load_split
from cige.data.sentence import Sentence, Span
from cige.entities.scores import score
from cige.tagging.finder import EntityFinder

TABLES = {"cases": "entities in tables, by what sets the cells apart"}
FLAT = True
Cell = tuple[str, str]  # text, and its label or NO_NAME
NO_NAME = ""
SETS = {
    "msra": {"NR": "PER", "NS": "LOC", "NT": "ORG"},
    "cluener": {"name": "PER", "address": "LOC", "organization": "ORG", "company": "ORG", "government": "ORG"},
}
PLAIN = (
    *("数量", "产品", "备注", "合格", "已完成", "普通", "销售额", "待定", "一等奖", "客户", "无", "男", "女", "技术部"),
    *("2021年", "星期三", "3,500", "38", "2.5kg", "A-12", "138****1234"),
)
SEPARATORS = {"，": "，", ",": ",", "tab": "\t", "two spaces": "  ", "four spaces": "    "}
SEPARATORS |= {"two wide spaces": "\u3000\u3000", "aligned columns": "", "one space": " "}
WIDTH = 24  # of an aligned column, where a Chinese character takes two


def bench(*, model: str | None = None, rows: Annotated[int, "of each table"] = 300) -> Iterator[dict[str, Any]]:
    """A row for each set and separator."""
    ner = load(model)
    for name, labels in SETS.items():
        for row in rows_of(ner, made_rows(cells_of(load_split(name, "dev"), labels), rows)):
            yield {"names of": name} | row


def cells_of(sentences: Sequence[Sentence], labels: Mapping[str, str]) -> dict[str, list[Cell]]:
    """The entities of labelled sentences by their label, but for those that hold a separator themselves."""
    found: dict[str, list[Cell]] = {label: [] for label in sorted(set(labels.values()))}
    for sentence in sentences:
        for span in sentence.spans:
            text = sentence.text[span.start : span.end]
            if span.label in labels and not re.search(r"[\s，,、；;：:]", text):
                found[labels[span.label]].append((text, labels[span.label]))
    return found


def made_rows(cells: Mapping[str, Sequence[Cell]], n_rows: int, *, seed: int = 0) -> list[list[Cell]]:
    """Rows of two to six cells, half of them names."""
    rng = random.Random(seed)
    kinds = [*cells, *[NO_NAME] * len(cells)]
    pools = {**cells, NO_NAME: [(text, NO_NAME) for text in PLAIN]}
    return [[rng.choice(pools[kind]) for kind in rng.sample(kinds, rng.randint(2, 6))] for _ in range(n_rows)]


def as_text(row: Sequence[Cell], separator: str) -> Sentence:
    """A row as one line with the spans of its names; an empty separator aligns columns by spaces."""
    text, spans = "", []
    for place, (cell, label) in enumerate(row):
        if place:
            text += separator or " " * max(2, WIDTH - 2 * len(row[place - 1][0]))
        if label != NO_NAME:
            spans.append(Span(len(text), len(text) + len(cell), label))
        text += cell
    return Sentence(text, tuple(spans))


def rows_of(ner: EntityFinder, rows: Sequence[Sequence[Cell]]) -> Iterator[dict[str, Any]]:
    """Right entities, and precision, recall and F1 in per cent, by separator."""
    labels = sorted({label for row in rows for _, label in row} - {NO_NAME})
    for name, separator in SEPARATORS.items():
        lines = [as_text(row, separator) for row in rows]
        found = list(ner.pipe([line.text for line in lines], types="coarse", labels=labels))
        counts = score([line.spans for line in lines], found).overall
        shares = {key: round(value, 2) for key, value in percent(counts).items()}
        yield {"separator": name, "right": counts.n_correct, "gold": counts.n_gold} | shares
