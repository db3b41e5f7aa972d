"""Entities in tables: how many are right when cells are set apart by tabs or spaces, and how many with commas.

Rows of two to six cells are made from the entities of the development sentences of MSRA and CLUENER and from cells that
hold none (numbers, dates, plain words).

  cige bench tables
  cige bench tables --model runs/weibo/model --rows 1000 --json tables.json
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from measure import environment, report, write

from cige.api import load
from cige.data.registry import load_split
from cige.data.sentence import Sentence, Span
from cige.entities.scores import score
from cige.tagging.finder import EntityFinder

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
SEPARATORS = {
    "，": "，",
    ",": ",",
    "tab": "\t",
    "two spaces": "  ",
    "four spaces": "    ",
    "two wide spaces": "\u3000\u3000",
    "aligned columns": None,  # spaces up to a width
    "one space": " ",
}
WIDTH = 24  # of an aligned column, where a Chinese character takes two


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


def as_text(row: Sequence[Cell], separator: str | None) -> Sentence:
    """A row as one line with the spans of its names; None aligns columns by spaces."""
    text, spans = "", []
    for place, (cell, label) in enumerate(row):
        if place:
            text += " " * max(2, WIDTH - 2 * len(row[place - 1][0])) if separator is None else separator
        if label != NO_NAME:
            spans.append(Span(len(text), len(text) + len(cell), label))
        text += cell
    return Sentence(text, tuple(spans))


def bench_tables(ner: EntityFinder, rows: Sequence[Sequence[Cell]]) -> list[dict[str, Any]]:
    """Right entities, and precision, recall and F1 in per cent, by separator."""
    found = []
    for name, separator in SEPARATORS.items():
        lines = [as_text(row, separator) for row in rows]
        labels = sorted({label for row in rows for _, label in row} - {NO_NAME})
        found_in = list(ner.pipe([line.text for line in lines], types="coarse", labels=labels))
        counts = score([line.spans for line in lines], found_in).overall
        shares = {"precision": counts.precision, "recall": counts.recall, "f1": counts.f1}
        found.append(
            {"separator": name, "right": counts.n_correct, "gold": counts.n_gold}
            | {key: round(100 * value, 2) for key, value in shares.items()}
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", help="write the result to this file")
    parser.add_argument("--model", help="model folder or hub id (default: the bundled model)")
    parser.add_argument("--rows", type=int, default=300, help="rows of each table (default 300)")
    args = parser.parse_args()
    ner, cases = load(args.model), []
    for name, labels in SETS.items():
        rows = made_rows(cells_of(load_split(name, "dev"), labels), args.rows)
        cases += [{"names of": name} | row for row in bench_tables(ner, rows)]
    report("entities in tables, by what sets the cells apart", cases)
    write(environment(threads=1, n_rounds=1) | {"cases": cases}, args.json)


if __name__ == "__main__":
    main()
