"""How far two readings of the same sentences agree: F1 of the second against the first, in all and by type.

    python annotations/consistency.py CORPUS_FOLDER

`today/again.tsv` has sentences of the other files that were read a second time without sight of the first answers. Both
readers are the same language model, so this is consistency and says nothing of how often both are wrong.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from names import ANSWERS, TYPES, read_rows, spans_of
from rebuild import texts_of


def f1(n_equal: int, n_first: int, n_second: int) -> float:
    return 200 * n_equal / (n_first + n_second) if n_first + n_second else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="folder of the raw corpora")
    corpus = parser.parse_args().corpus
    again = read_rows(ANSWERS / "again.tsv")
    read_twice = {(row.part, row.line) for row in again}
    files = [path for path in ANSWERS.glob("*.tsv") if path.stem != "again"]
    first = {(row.part, row.line): row for path in files for row in read_rows(path)}
    texts = texts_of(corpus, again)
    counts: dict[str, Counter[str]] = {name: Counter() for name in ("equal", "first", "second")}
    n_same_places = n_sentences = 0
    for row in again:
        place = (row.part, row.line)
        if place not in first or place not in texts:
            continue
        n_sentences += 1
        one, two = (set(spans_of(texts[place], names)) for names in (first[place].names, row.names))
        n_same_places += len({span[:2] for span in one} & {span[:2] for span in two})
        for name, spans in (("equal", one & two), ("first", one), ("second", two)):
            counts[name].update(label for _, _, label in spans)
    n_equal, n_first, n_second = (sum(counts[name].values()) for name in ("equal", "first", "second"))
    print(f"{n_sentences} of {len(read_twice)} sentences: F1 {f1(n_equal, n_first, n_second):.1f}, ", end="")
    print(f"of places without types {f1(n_same_places, n_first, n_second):.1f}")
    for label in TYPES:
        by_label = [counts[name][label] for name in ("equal", "first", "second")]
        print(f"{label:11}{by_label[1]:6}{by_label[2]:6}  {f1(*by_label):5.1f}")


if __name__ == "__main__":
    main()
