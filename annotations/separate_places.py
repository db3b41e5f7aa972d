"""Separate places that a data set annotates as one: 湖北省武汉市 becomes 湖北省 and 武汉市, as the set "today" has it.

    python annotations/separate_places.py uner_gsdsimp/train.bmes.xz places.tsv gsd.bmes

`places.tsv` has rows of name, type and source, of which the administrative ones are read (the gazetteer's
names.tsv.xz). A LOC is separated if it consists of such names and nothing else, each of two or more characters.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from cige.data import Sentence, Span, read_sentences, write_sentences
from cige.lexicon.names_build import read_rows

SOURCES = ("admin-divisions", "jionlp", "cldr")


def parts_of(text: str, places: set[str]) -> list[int]:
    """The lengths of the fewest places that make up a text; [len(text)] if it is one place or there is no such way."""
    best: list[list[int] | None] = [[], *[None] * len(text)]
    for end in range(1, len(text) + 1):
        for start in range(end - 1):
            before = best[start]
            whole = start == 0 and end == len(text)
            if before is not None and not whole and text[start:end] in places:
                parts = [*before, end - start]
                if best[end] is None or len(parts) < len(best[end] or ()):
                    best[end] = parts
    found = best[len(text)]
    return [len(text)] if text in places or not found else found


def separated(sentence: Sentence, places: set[str]) -> Sentence:
    spans = []
    for span in sentence.spans:
        start = span.start
        lengths = [span.end - span.start]
        if span.label == "LOC":
            lengths = parts_of(sentence.text[span.start : span.end], places)
        for length in lengths:
            spans.append(Span(start, start + length, span.label))
            start += length
    return Sentence(sentence.text, tuple(spans))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("places", type=Path)
    parser.add_argument("output", type=Path)
    args = parser.parse_args()
    places = {name for name, type_, source in read_rows(args.places) if type_ == "LOC" and source in SOURCES}
    before = list(read_sentences(args.data))
    after = [separated(sentence, places) for sentence in before]
    write_sentences(args.output, after)
    n_before, n_after = (sum(len(sentence.spans) for sentence in part) for part in (before, after))
    print(f"{args.output}: {len(after):,} sentences, {n_after - n_before:,} entities more than before")


if __name__ == "__main__":
    main()
