"""Score a model on labelled sentences.

Examples:
  cige evaluate --model runs/weibo/model --data weibo/test.bmes
  cige evaluate --data msra/test.bmes --labels NR=PER,NS=LOC,NT=ORG --json
  cige evaluate --data weibo/dev.bmes --types coarse --data-labels-only --errors errors.jsonl \\
      --labels PER.NAM=PER GPE.NAM=LOC LOC.NAM=LOC ORG.NAM=ORG PER.NOM= GPE.NOM= LOC.NOM= ORG.NOM=
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from cige.commands.label_proposals import check_labels
from cige.commands.options import (
    add_model_options,
    add_repair_option,
    add_types_option,
    at_least,
    load_finder,
    make_console,
    print_table,
    tell,
)
from cige.json_text import to_json
from cige.text.counted import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cige.data.sentence import Sentence


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_options(parser)
    add_data_options(parser)
    add_types_option(parser)
    parser.add_argument(
        "--data-labels-only",
        action="store_true",
        help="leave out entities with labels that the data does not have, which otherwise count as errors",
    )
    parser.add_argument(
        "--batch-size", type=at_least(1), default=16, metavar="N", help="sentences per batch (default: 16)"
    )
    parser.add_argument("--errors", metavar="FILE", help="write every error with its text, one JSON object per line")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def add_data_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", required=True, metavar="FILE", help="labelled sentences, in any format cige reads")
    add_label_option(parser)
    parser.add_argument(
        "--train", metavar="FILE", help="training sentences: score entities in them and other entities separately"
    )
    add_repair_option(parser)


def add_label_option(parser: argparse.ArgumentParser, *, help: str | None = None) -> None:
    parser.add_argument(
        "--labels",
        nargs="+",
        default=[],
        metavar="NR=PER",
        help=help
        or "data label = model label, where they differ, separated by spaces or commas; several labels may be mapped "
        "to one, and PER.NOM= leaves a label out",
    )


def read_label_map(args: argparse.Namespace, sentences: Sequence[Sentence], path: str) -> dict[str, str]:
    """Parse --labels; print a note on stderr about labels that no sentence has; raises a DataError for a wrong item."""
    from cige.entities.labels import not_in_data, parse_label_map

    labels = parse_label_map(args.labels, may_drop=True)
    if absent := not_in_data(labels, [s.spans for s in sentences]):
        there = ", ".join(sorted({span.label for s in sentences for span in s.spans})) or "none"
        tell(f"--labels names {', '.join(absent)}, which {path} does not have; it has {there}")
    return labels


def _read(path: str, args: argparse.Namespace, *, nested: bool) -> Sequence[Sentence]:
    """The sentences of a file for a model of `nested` entities or another one; with --repair, none are nested."""
    from cige.data import read_sentences
    from cige.data.jsonl import NO_GAPS
    from cige.errors import DataError

    try:
        return read_sentences(path, repair=args.repair, nested=nested and not args.repair)
    except DataError as reason:
        if not (nested and args.repair and NO_GAPS in str(reason)):
            raise
        message = str(reason).replace(
            NO_GAPS, "is discontinuous, which --repair leaves no room for; leave out --repair"
        )
        raise DataError(message) from None


def run(args: argparse.Namespace) -> None:
    from cige.data import read_sentences
    from cige.data.documents.document import json_text
    from cige.data.text_files import write_text
    from cige.entities.score_table import calibration_table, confusion_table, error_table, report_table
    from cige.tagging.evaluation import evaluate

    for path in filter(None, (args.data, args.train)):
        if not Path(path).exists():
            read_sentences(path)  # raises the error before a model is loaded
    ner = load_finder(args.model, args)
    sentences = _read(args.data, args, nested=ner.label_facts.nested)
    labels = read_label_map(args, sentences, args.data)
    train = _read(args.train, args, nested=ner.label_facts.nested) if args.train else None
    check_labels(ner, sentences, labels, args.data, types=args.types, word_labels=ner.word_labels)
    options = {} if args.types == "fine" else {"types": args.types}
    options |= {"data_labels_only": args.data_labels_only, "batch_size": args.batch_size}
    result = evaluate(ner, sentences, labels=labels, train=train, **options)
    gold = {labels.get(span.label, span.label) for sentence in sentences for span in sentence.spans}
    if never_gold := sorted(set(result.labels) - gold):
        tell(
            f"no entity of {args.data} is {' or '.join(never_gold)}; predictions of it count as errors "
            "(--data-labels-only leaves them out)",
        )
    if args.errors:
        lines = [json_text(error.to_dict(sentences[error.sentence].text)) for error in result.errors]
        write_text(args.errors, "".join(line + "\n" for line in lines))
    if args.json:
        print(to_json(result.to_dict(), indent=1))
    else:
        console = make_console()
        print_table(report_table(result.report, title=args.data))
        if result.errors:
            console.print(error_table(result.errors))
            console.print(confusion_table(result.confusion))
        if result.points:
            console.print(calibration_table(result.points))
        n_sentences = counted(result.report.n_sentences, "sentence")
        print(f"{n_sentences}, {result.sentences_per_second:,.1f} sentences per second")
