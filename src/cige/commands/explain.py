"""Explain a prediction: the lattice, the words that each entity attended to, and what changes without a word.

Examples:
  cige explain "重庆人和药店请了李明"
  cige explain news.txt --output news.html
  cige explain "花开公司竭诚欢迎您" --model runs/weibo/dcsan/model --maps --output maps.png
"""

from __future__ import annotations

import argparse

from cige.commands.options import add_model_options, at_least, load_ner, make_console
from cige.commands.read_bar import text_bar
from cige.commands.texts import add_source_argument, whole_text_of
from cige.json_text import to_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source_argument(parser, "the text to explain")
    add_model_options(parser)
    parser.add_argument(
        "--output", "-o", metavar="FILE", help="write an HTML page, or drawings if FILE is a .svg or .png"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument(
        "--n-words", type=at_least(0), default=5, metavar="N", help="list the N most attended words (default: 5)"
    )
    parser.add_argument("--no-removals", action="store_true", help="do not predict again without each word")
    parser.add_argument(
        "--word-sets",
        action=argparse.BooleanOptionalAction,
        help="list the B, M, E and S words of each character (default: if the model uses such sets)",
    )
    parser.add_argument("--maps", action="store_true", help="draw the model's attention as heat maps")


def run(args: argparse.Namespace) -> None:
    text = whole_text_of(args.source)
    ner = load_ner(args.model, args)
    with text_bar(0 if args.no_removals else len(text)) as on_progress:
        explanation = ner.explain(
            text,
            n_words=args.n_words,
            removals=not args.no_removals,
            word_sets=args.word_sets,
            maps=args.maps,
            on_progress=on_progress,
        )
    if args.output:
        explanation.save(args.output)
        print(f"wrote {args.output}")
    elif args.json:
        print(to_json(explanation.to_dict()))
    else:
        make_console().print(explanation.to_terminal())
