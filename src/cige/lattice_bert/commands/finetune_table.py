"""Print Table 6 of each model and the models' rows of Table 1, from the results of `cige lattice-bert finetune all`.

Examples:
  cige lattice-bert finetune table runs/finetuned/lattice_tiny runs/finetuned/bert_our_tiny
"""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folders", nargs="+", metavar="FOLDER", help="output folders of `cige lattice-bert finetune all`"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    from cige.lattice_bert.tasks.grid import GridResult, tables

    print(tables([GridResult.read(folder) for folder in args.folders]))
