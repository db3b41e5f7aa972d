"""Put the annotated names back into the sentences of the corpora, as labelled sentences to train on.

    python annotations/rebuild.py CORPUS_FOLDER OUTPUT_FOLDER

CORPUS_FOLDER has the raw corpora (zh_corpus.txt.xz, zh_corpus2.txt.xz, ...). The output is train.bmes and dev.bmes: the
rows of `today/dev.tsv` are kept apart for development. A row whose line has another checksum is left out and counted.
"""

from __future__ import annotations

import argparse
import lzma
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from names import ANSWERS, Row, checksum, read_rows, spans_of

from cige.data import Sentence, Span, write_sentences


def texts_of(corpus: Path, rows: Iterable[Row]) -> dict[tuple[str, int], str]:
    """The lines that the rows are about, by part and line number; those with another checksum are missing."""
    wanted: dict[str, dict[int, str]] = defaultdict(dict)
    for row in rows:
        wanted[row.part][row.line] = row.checksum
    texts = {}
    for part, lines in wanted.items():
        path = corpus / f"{part}.txt.xz"
        with lzma.open(path, "rt", encoding="utf-8", newline="\n") as file:
            for number, line in enumerate(file, start=1):
                text = line.rstrip("\n")
                if number in lines and checksum(text) == lines[number]:
                    texts[part, number] = text
    return texts


def sentences_of(rows: Iterable[Row], texts: dict[tuple[str, int], str]) -> list[Sentence]:
    found = [(texts[row.part, row.line], row.names) for row in rows if (row.part, row.line) in texts]
    return [Sentence(text, tuple(Span(*span) for span in spans_of(text, names))) for text, names in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="folder of the raw corpora")
    parser.add_argument("output", type=Path, help="folder for train.bmes and dev.bmes")
    args = parser.parse_args()
    rows = {path.stem: read_rows(path) for path in sorted(ANSWERS.glob("*.tsv")) if path.stem != "again"}
    texts = texts_of(args.corpus, [row for part in rows.values() for row in part])
    args.output.mkdir(parents=True, exist_ok=True)
    dev = rows.get("dev", [])
    train = [row for name, part in rows.items() if name != "dev" for row in part]
    for name, part in (("dev", dev), ("train", train)):
        sentences = sentences_of(part, texts)
        write_sentences(args.output / f"{name}.bmes", sentences)
        n_names, n_lost = sum(len(sentence.spans) for sentence in sentences), len(part) - len(sentences)
        print(f"{name}.bmes: {len(sentences):,} sentences, {n_names:,} names; {n_lost} rows left out")


if __name__ == "__main__":
    main()
