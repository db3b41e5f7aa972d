"""Measure how much user words improve predictions on labelled sentences, without retraining.

The sentences are predicted without user words, with all names in them as user words, with the same number of random
n-grams in addition, and with each gazetteer. With --train, the recall of entities that do not occur in the training
data is reported too. With several models, all results are in one table, and --figure draws it.

A list of the names of the file itself is the best possible list, so its row is an upper bound. The gain of a list from
another source depends on the share of the names that it contains: "names listed" is the share of the file's distinct
names that are in the list, and in "entities listed" each occurrence of a name counts. `cige data names` makes a list
from other labelled files.

Only labels that the data has are scored. If a model uses the labels of user words, there are also rows for the names
with their labels, and with no label or a wrong one for a fifth of them. Lists with labels are used with and without
them.

  cige user-words --model runs/ecommerce/model --data ecommerce/dev.bmes --train ecommerce/train.bmes
  cige user-words --data news.bmes --gazetteer companies.txt places.txt
  cige user-words --model runs/flat/model --model runs/dcsan/model --data dev.bmes --figure user_words.png
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cige.commands.evaluate import add_data_options
from cige.commands.label_proposals import check_labels
from cige.commands.options import MODEL_HELP, add_model_options, load_ner, print_table, seed, tell_incomplete
from cige.json_text import to_json

if TYPE_CHECKING:
    from cige.tagging.evaluation import UserWordTrial


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_options(parser, models_help=f"{MODEL_HELP}; may be given several times")
    add_data_options(parser)
    parser.add_argument(
        "--gazetteer",
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help="word lists to try separately, with labels and modes if they have them",
    )
    parser.add_argument("--seed", type=seed, default=0, help="seed of the random n-grams (default: 0)")
    parser.add_argument("--figure", metavar="FILE", help="draw the table as a bar chart, in a .svg, .png or .pdf file")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(args: argparse.Namespace) -> None:
    from cige.data import read_sentences
    from cige.drawing.figures import names_of_folders
    from cige.entities.labels import parse_label_map
    from cige.lexicon.words_file import read_words
    from cige.tagging.evaluation import user_word_trials

    lists = {path: read_words(path, spaces=True) for path in args.gazetteer}
    tell_incomplete(*(words.report for words in lists.values()))
    models: list[str | None] = args.model or [None]
    names = names_of_folders([model or "bundled" for model in models])
    ners = {name: load_ner(model, args) for name, model in zip(names, models, strict=True)}
    nested = all(ner.label_facts.nested for ner in ners.values()) and not args.repair
    sentences = read_sentences(args.data, repair=args.repair, nested=nested)
    train = read_sentences(args.train, repair=args.repair, nested=nested) if args.train else None
    labels = parse_label_map(args.labels, may_drop=True)
    of_lists = {word.label for listed in lists.values() for word in listed.user_words if word.label is not None}
    for ner in ners.values():
        check_labels(ner, sentences, labels, args.data, word_labels={*of_lists, *ner.word_labels})
    with_labels = any(ner.read_word_labels for ner in ners.values())  # the same rows for all models
    trials = {
        name: user_word_trials(
            ner,
            sentences,
            labels=labels,
            train=train,
            gazetteers={path: words.user_words for path, words in lists.items()},
            with_labels=with_labels,
            seed=args.seed,
        )
        for name, ner in ners.items()
    }
    as_values = {name: [trial.to_dict() for trial in of_model] for name, of_model in trials.items()}
    runs = {name: [values] for name, values in as_values.items()}  # one per model
    if args.json:
        shown = as_values if len(models) > 1 else as_values[names[0]]
        print(to_json(shown, indent=1))
    elif len(models) == 1:
        _print_table(trials[names[0]], args.data)
    else:
        from cige.reports.comparison_views import user_word_table

        print(f"F1 / recall of entities unseen in training, with user words; {args.data}:\n\n{user_word_table(runs)}")
    if args.figure:
        from cige.reports.comparison_views import draw_user_words

        draw_user_words(runs, Path(args.figure), split="")


def _print_table(trials: Sequence[UserWordTrial], title: str) -> None:
    from rich.table import Table

    unseen = ["R of unseen"] if trials[0].unseen_recall is not None else []
    table = Table("user words", "number", "names listed", "entities listed", "P", "R", "F1", *unseen, title=title)
    for trial in trials:
        report = trial.report
        ratios = [trial.listed_names, trial.listed_entities, report.precision, report.recall, report.f1]
        ratios += [] if trial.unseen_recall is None else [trial.unseen_recall]
        table.add_row(trial.name, f"{trial.n_words:,}", *(f"{100 * ratio:.2f}" for ratio in ratios))
    print_table(table)
