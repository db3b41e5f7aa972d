"""Label raw text with the entities that several models agree on, as additional training data for `cige train`.

Where the models differ, the text is left open (label `?`), and training accepts any tags there. For the labels listed
after `=`, only that model is used. With a single model, entities with a score of at least `--min-score` are labelled
and less certain ones are left open, which can be used to train a smaller model. Use the output in a recipe as one of
`data.sources`.

Examples:
  cige pseudo-label raw.txt agreed.jsonl --model runs/a --model runs/b
  cige pseudo-label raw.txt agreed.jsonl --model runs/a --model runs/b --model runs/time=TIME --n 100000
  cige pseudo-label raw.txt labelled.jsonl --model bundled --min-score 0.6
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from cige.commands.options import at_least, seed, share
from cige.commands.texts import add_source_argument, sentences_of
from cige.errors import DataError, ModelError
from cige.text.counted import counted

if TYPE_CHECKING:
    from cige.data.sentence import Sentence

BLOCK = 2000  # texts that all models process before the next block is read


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source_argument(parser, "raw text, one sentence per line")
    parser.add_argument("output", help="file of labelled sentences to write (.jsonl, or .jsonl.xz)")
    parser.add_argument(
        "--model",
        action="append",
        required=True,
        metavar="FOLDER[=LABEL,...]",
        help="a model, usually given several times; with labels, the only model that is used for these labels",
    )
    parser.add_argument(
        "--min-score", type=share, default=0.5, metavar="P", help="minimum score of entities (default: 0.5)"
    )
    parser.add_argument(
        "--max-open",
        type=share,
        default=0.3,
        metavar="P",
        help="drop sentences with a larger share of open text (default: 0.3)",
    )
    parser.add_argument(
        "--keep-empty",
        type=share,
        default=0.3,
        metavar="P",
        help="share of sentences without entities to keep (default: 0.3)",
    )
    parser.add_argument(
        "--chars",
        type=at_least(1),
        nargs=2,
        default=(8, 120),
        metavar=("MIN", "MAX"),
        help="characters per sentence (default: 8 120)",
    )
    parser.add_argument("--n", type=at_least(1), metavar="N", help="stop after this many sentences")
    parser.add_argument("--seed", type=seed, default=1, help="seed of the selection (default: 1)")


def run(args: argparse.Namespace) -> None:
    from cige.data import write_sentences

    low, high = args.chars
    if low > high:
        raise DataError(f"--chars {low} {high}: expected the smallest number first, such as --chars {high} {low}")
    dropped: Counter[str] = Counter()
    sentences = list(islice(_agreed(args, dropped), args.n))
    if not sentences:
        lines = f"line of {low} to {high} characters"
        reasons = "".join(f"; {n:,} {reason}" for reason, n in dropped.items())
        raise DataError(f"{args.source}: no {lines}" + (f" was kept{reasons}" if reasons else ""))
    write_sentences(args.output, sentences)
    counts = Counter(span.label for sentence in sentences for span in sentence.spans)
    for label, n in counts.most_common():
        print(f"{n:9,}  {label}")
    print(f"{args.output}: {counted(len(sentences), 'sentence')}")


def _agreed(args: argparse.Namespace, dropped: Counter[str]) -> Iterator[Sentence]:
    """The labelled sentences; the other texts of the right length are counted in `dropped`, by reason."""
    import numpy as np

    from cige.api import load
    from cige.data.sentence import OPEN, Sentence
    from cige.tagging.agreement import Judge, agreed_spans

    finders, judges = [], []
    for given in args.model:
        folder, _, labels = (given, "", "") if Path(given).exists() else given.partition("=")
        finder = load(folder)
        wanted = frozenset(filter(None, labels.split(",")))
        missing = sorted(wanted - set(finder.labels))
        if missing:
            raise ModelError(
                f"--model {given}: it has no label {', '.join(missing)}; it has {', '.join(finder.labels)}"
            )
        finders.append(finder)
        judges.append(Judge(wanted))
    rng = np.random.default_rng(args.seed)
    low, high = args.chars
    texts = (text for text in map(str.strip, sentences_of(args.source)) if low <= len(text) <= high)
    while block := list(islice(texts, BLOCK)):
        entities = [list(finder.pipe(block, batch_size=64, nested=False)) for finder in finders]
        for text, *of_text in zip(block, *entities, strict=True):
            spans = agreed_spans(of_text, judges, min_score=args.min_score)
            n_open = sum(span.end - span.start for span in spans if span.label == OPEN)
            if n_open > args.max_open * len(text):
                dropped[f"with more than {args.max_open:.0%} of open text (--max-open)"] += 1
                continue
            if not spans and rng.random() >= args.keep_empty:
                dropped["without entities (--keep-empty)"] += 1
                continue
            yield Sentence(text, spans)
