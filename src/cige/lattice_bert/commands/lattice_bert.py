"""Pre-train a Lattice-BERT, and fine-tune it on the tasks of the paper.

Examples:
  cige lattice-bert pretrain run pretrain/tiny --data data --output runs/tiny
  cige lattice-bert finetune tnews --model runs/tiny/model --data data --output runs/tnews
"""

from __future__ import annotations

import argparse

from cige.lattice_bert.commands import add_verb

_VERBS = {
    "pretrain": "build its vocabulary and data, train it, describe it",
    "finetune": "fine-tune it on a task, or on all of the paper's",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(metavar="|".join(_VERBS), required=True)
    for name, what in _VERBS.items():
        add_verb(verbs, name, what, name)
