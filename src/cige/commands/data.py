"""Download public data sets, describe labelled files, convert them, and list the names in them.

Examples:
  cige data fetch weibo resume
  cige data stats weibo/train.bmes --lexicon my-lexicon
  cige data convert labelled.jsonl labelled.bmes
  cige data names people.bmes wiki.bmes --labels PER LOC ORG --output names.txt    # a gazetteer for `cige user-words`
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cige.commands.lexicon import open_lexicon
from cige.commands.options import at_least, print_table, tell_repairs
from cige.commands.parser import add_verb
from cige.json_text import to_json
from cige.text.counted import counted

if TYPE_CHECKING:
    from cige.data import Sentence


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(metavar="stats|fetch|convert|names", required=True)

    stats = add_verb(
        verbs, "stats", run_stats, "sentences, characters, words and entities, as in Table 1 of the FLAT paper"
    )
    stats.add_argument("file", metavar="FILE", help="labelled sentences, in any format that cige reads")
    stats.add_argument("--lexicon", metavar="LEXICON", help="lexicon folder or word list, to count words per sentence")
    stats.add_argument("--json", action="store_true", help="print JSON instead of a table")
    _add_reading_options(stats)

    fetch = add_verb(verbs, "fetch", run_fetch, "download public data sets and check their sha256")
    fetch.add_argument("names", nargs="+", metavar="NAME", help="weibo, resume, msra, ecommerce or cluener")
    fetch.add_argument("--data-dir", metavar="FOLDER", help="folder to write to (default: the cache)")

    convert = add_verb(verbs, "convert", run_convert, "convert labelled sentences to another format")
    convert.add_argument("file", metavar="FILE", help="labelled sentences, in any format that cige reads")
    convert.add_argument(
        "output", metavar="OUTPUT", help="file to write; its suffix decides the format: .bmes, .bioes, .bio, .jsonl"
    )
    convert.add_argument("--to", default="auto", help="bmes, bioes, bio, jsonl or cluener (default: by the suffix)")
    _add_reading_options(convert)

    names = add_verb(verbs, "names", run_names, "write the distinct names of labelled files as a word list")
    names.add_argument("files", nargs="+", metavar="FILE", help="labelled sentences, in any format that cige reads")
    names.add_argument("--labels", nargs="+", metavar="LABEL", help="only entities with these labels (default: all)")
    names.add_argument(
        "--min-count",
        type=at_least(1),
        default=1,
        metavar="N",
        help="only names labelled at least N times (default: 1)",
    )
    names.add_argument(
        "--output", required=True, metavar="FILE", help="file with one name per line; .gz and .xz are compressed"
    )
    _add_reading_options(names)


def _add_reading_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format", default="auto", help="format of FILE: bmes, bioes, bio, jsonl, cluener (default: auto)"
    )
    parser.add_argument("--repair", action="store_true", help="repair invalid tag transitions and list them")


def run_stats(args: argparse.Namespace) -> None:
    from cige.data.stats import dataset_stats

    sentences = _read(args, args.file)
    stats = dataset_stats(sentences, open_lexicon(args.lexicon).snapshot() if args.lexicon else None)
    if args.json:
        print(to_json(stats.to_dict(), indent=1))
    else:
        print_table(stats.table(title=args.file))


def run_fetch(args: argparse.Namespace) -> None:
    from cige.data.registry import fetch, get_dataset

    for name in args.names:
        get_dataset(name)  # a wrong name is reported before anything is downloaded
    for name in args.names:
        for path in fetch(name, data_dir=args.data_dir):
            print(path)


def run_convert(args: argparse.Namespace) -> None:
    from cige.data import write_sentences

    sentences = _read(args, args.file)
    write_sentences(args.output, sentences, format=args.to)
    print(f"wrote {args.output}: {counted(len(sentences), 'sentence')}")


def run_names(args: argparse.Namespace) -> None:
    from cige.data.names import user_words_of
    from cige.data.text_files import write_text

    sentences = [sentence for file in args.files for sentence in _read(args, file)]
    names = user_words_of(sentences, labels=args.labels, min_count=args.min_count)
    write_text(args.output, "".join(f"{name}\n" for name in names))
    print(f"wrote {args.output}: {counted(len(names), 'name')} of {counted(len(sentences), 'sentence')}")


def _read(args: argparse.Namespace, file: str) -> tuple[Sentence, ...]:
    from cige.data import read_labelled

    # Nested entities are training data too; a format that cannot hold them refuses them when it is written.
    labelled = read_labelled(file, format=args.format, repair=args.repair, nested=not args.repair)
    tell_repairs(file, labelled.repairs)
    return tuple(labelled.sentences)
