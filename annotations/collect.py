"""Put the answers of the readers into the folder `today`, one file for each reader and one for development.

    python annotations/collect.py BATCHES ANSWERS

BATCHES is the output of draw.py, ANSWERS a folder of `READER-BATCH.tsv` with `number<TAB>name|TYPE<TAB>...`. The batch
`--dev` of every reader is kept apart for development. Answers that do not fit their sentence are an error.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

from names import ANSWERS, spans_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("batches", type=Path)
    parser.add_argument("answers", type=Path)
    parser.add_argument("--dev", default="21", help="number of the batches for development (default: %(default)s)")
    parser.add_argument("--prefix", default="train", help="of the files to train on (default: %(default)s)")
    parser.add_argument("--again", action="store_true", help="the answers are a second reading: write again.tsv")
    args = parser.parse_args()
    places: dict[str, dict[str, str]] = defaultdict(dict)
    for line in (args.batches / "places.tsv").read_text(encoding="utf-8").splitlines():
        name, number, _kind, part, place, code = line.split("\t")
        places[name][number] = "\t".join((part, place, code))
    rows: dict[str, list[str]] = defaultdict(list)
    for path in sorted(args.answers.glob("*.tsv")):
        texts = dict(row.split("\t", 1) for row in (args.batches / f"{path.stem}.txt").read_text("utf-8").splitlines())
        reader, batch = path.stem.split("-")
        for line in path.read_text(encoding="utf-8").splitlines():
            number, *names = line.rstrip("\t").split("\t")
            spans_of(texts[number], tuple(names))  # raises an error that names what does not fit
            file = "again" if args.again else "dev" if batch == args.dev else f"{args.prefix}-{reader}"
            rows[file].append("\t".join((places[path.stem][number], *dict.fromkeys(names))))
    ANSWERS.mkdir(exist_ok=True)
    for file, lines in sorted(rows.items()):
        (ANSWERS / f"{file}.tsv").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        print(f"{file}.tsv: {len(lines):,} sentences, {sum(line.count('|') for line in lines):,} names written down")


if __name__ == "__main__":
    main()
