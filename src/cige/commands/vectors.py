"""Train vectors on raw text, and convert vector files.

Examples:
  cige vectors train corpus.txt.xz vectors --unit char bigram word
  cige vectors convert word2vec.txt.gz vectors/word --lexicon my-lexicon
"""

from __future__ import annotations

import argparse

from cige.commands.lexicon import open_lexicon
from cige.commands.options import at_least, seed
from cige.commands.parser import add_verb
from cige.text.counted import counted

UNITS = ("char", "bigram", "word")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(metavar="train|convert", required=True)

    train = add_verb(verbs, "train", run_train, "skip-gram vectors of characters, bigrams and words (gensim)")
    train.add_argument("corpus", metavar="CORPUS", help="UTF-8 text with one sentence per line; plain, .gz or .xz")
    train.add_argument("output", metavar="FOLDER", help="folder for char.npz, bigram.npz and word.npz")
    train.add_argument("--unit", nargs="+", default=UNITS, choices=UNITS, help="(default: all)")
    train.add_argument(
        "--width", type=at_least(1), default=50, metavar="N", help="dimensions of a vector (default: 50)"
    )
    train.add_argument("--window", type=at_least(1), default=5, metavar="N", help="context on either side (default: 5)")
    train.add_argument("--epochs", type=at_least(1), default=5, metavar="N", help="passes over the text (default: 5)")
    train.add_argument(
        "--min-count", type=at_least(1), default=3, metavar="N", help="minimum count of a unit (default: 3)"
    )
    train.add_argument("--lexicon", metavar="LEXICON", help="lexicon whose words are added to the segmenter")
    train.add_argument("--seed", type=seed, default=0, help="(default: 0)")
    train.add_argument(
        "--workers", type=at_least(1), default=1, metavar="N", help="threads; several are not reproducible (default: 1)"
    )

    convert = add_verb(verbs, "convert", run_convert, "convert a vector file to a memory-mapped folder")
    convert.add_argument("file", metavar="FILE", help="word2vec text (plain, .gz, .xz) or binary, or .npz")
    convert.add_argument("output", metavar="FOLDER", help="where to write it")
    convert.add_argument("--lexicon", metavar="LEXICON", help="align with this lexicon: row i is the vector of word i")
    convert.add_argument("--dtype", choices=("float16", "float32"), default="float16", help="(default: float16)")


def run_train(args: argparse.Namespace) -> None:
    from cige.lexicon.train_vectors import train_vectors

    lexicon = open_lexicon(args.lexicon) if args.lexicon else None
    for unit in args.unit:
        made = train_vectors(
            args.corpus,
            args.output,
            unit=unit,
            width=args.width,
            window=args.window,
            epochs=args.epochs,
            min_count=args.min_count,
            lexicon=lexicon if unit == "word" else None,
            seed=args.seed,
            workers=args.workers,
        )
        print(f"wrote {made.path}: {counted(made.n_words, 'vector')}, from {counted(made.n_tokens, unit)} per pass")


def run_convert(args: argparse.Namespace) -> None:
    from cige.commands.read_bar import read_bar
    from cige.lexicon.convert_vectors import convert_vectors

    lexicon = open_lexicon(args.lexicon) if args.lexicon else None
    with read_bar() as on_progress:
        report = convert_vectors(args.file, args.output, lexicon=lexicon, dtype=args.dtype, on_progress=on_progress)
    print(report)
    print(f"wrote {args.output}")
