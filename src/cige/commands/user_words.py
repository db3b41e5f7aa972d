"""Measure what a user's own words gain on labelled sentences, with no retraining.

The sentences are read with no user words, with every name in them listed, with as many random n-grams mixed in, and
with each gazetteer. With --train, recall of the entities that training did not name is reported too.

  cige user-words --model runs/ecommerce/model --data ecommerce/dev.bmes --train ecommerce/train.bmes
"""

from __future__ import annotations

import argparse
import json
import sys

from cige.commands.evaluate import add_data_options
from cige.commands.options import add_model_options, load_ner, make_console


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_options(parser)
    add_data_options(parser)
    parser.add_argument("--gazetteer", nargs="+", default=[], metavar="FILE", help="word lists to try, each by itself")
    parser.add_argument("--seed", type=int, default=0, help="of the random n-grams (default: 0)")
    parser.add_argument("--json", action="store_true", help="print JSON in place of a table")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    from cige.data import read_sentences
    from cige.entities.labels import parse_label_map
    from cige.evaluation import user_word_trials
    from cige.lexicon.words_file import read_words

    lists = {path: read_words(path, spaces=True) for path in args.gazetteer}
    for found in lists.values():
        if found.report.n_refused:
            print(f"cige: {found.report}", file=sys.stderr)
    trials = user_word_trials(
        load_ner(args),
        read_sentences(args.data, repair=args.repair),
        labels=parse_label_map(args.labels),
        train=read_sentences(args.train, repair=args.repair) if args.train else None,
        gazetteers={path: found.words for path, found in lists.items()},
        seed=args.seed,
    )
    if args.json:
        print(json.dumps([trial.to_dict() for trial in trials], ensure_ascii=False, indent=1))
        return
    from rich.table import Table

    unseen = ["R of unseen"] if args.train else []
    table = Table("user words", "number", "P", "R", "F1", *unseen, title=args.data)
    for trial in trials:
        ratios = [trial.report.precision, trial.report.recall, trial.report.f1]
        ratios += [] if trial.unseen_recall is None else [trial.unseen_recall]
        table.add_row(trial.name, f"{trial.n_words:,}", *(f"{100 * ratio:.2f}" for ratio in ratios))
    make_console().print(table)
