"""Score a model on labelled sentences.

Examples:
  cige evaluate --model runs/weibo/model --data weibo/test.bmes
  cige evaluate --data msra/test.bmes --labels NR=PER,NS=LOC,NT=ORG --json
"""

from __future__ import annotations

import argparse
import sys

from cige.commands.options import add_model_options, at_least, load_finder, make_console
from cige.json_text import to_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_options(parser)
    add_data_options(parser)
    parser.add_argument("--batch-size", type=at_least(1), default=16, metavar="N", help="sentences at once (16)")
    parser.add_argument("--json", action="store_true", help="print JSON in place of a table")
    parser.set_defaults(run=run)


def add_data_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", required=True, metavar="FILE", help="labelled sentences, in any format cige reads")
    parser.add_argument(
        "--labels", default="", metavar="NR=PER,...", help="data label = model label, where they differ"
    )
    parser.add_argument("--train", metavar="FILE", help="training sentences: score entities seen there and not seen")
    parser.add_argument("--repair", action="store_true", help="mend illegal tag transitions, do not refuse the file")


def run(args: argparse.Namespace) -> None:
    from cige.data import read_sentences
    from cige.entities.labels import parse_label_map
    from cige.entities.score_table import report_table
    from cige.tagging.evaluation import evaluate

    labels = parse_label_map(args.labels)
    sentences = read_sentences(args.data, repair=args.repair)
    train = read_sentences(args.train, repair=args.repair) if args.train else None
    ner = load_finder(args)
    found = evaluate(ner, sentences, labels=labels, train=train, batch_size=args.batch_size)
    never_gold = sorted(set(ner.labels) - {labels.get(s.label, s.label) for x in sentences for s in x.spans})
    if never_gold:
        print(
            f"cige: no entity of {args.data} is {' or '.join(never_gold)}; what the model finds of it counts as wrong",
            file=sys.stderr,
        )
    if args.json:
        print(to_json(found.to_dict(), indent=1))
    else:
        make_console().print(report_table(found.report, title=args.data))
        print(f"{found.report.n_sentences:,} sentences, {found.sentences_per_second:,.1f} sentences per second")
