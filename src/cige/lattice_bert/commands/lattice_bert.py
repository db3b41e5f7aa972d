"""Pre-train a Lattice-BERT, and fine-tune it on the tasks of the paper.

Examples:
  cige lattice-bert pretrain run pretrain/tiny --data data --output runs/tiny
  cige lattice-bert finetune tnews --model runs/tiny/model --data data --output runs/tnews
"""

from __future__ import annotations

import argparse

from cige.lattice_bert.commands import finetune, pretrain

_VERBS = {
    "pretrain": ("build its vocabulary and data, train it, describe it", pretrain),
    "finetune": ("fine-tune it on a task, or on all of the paper's", finetune),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(metavar="|".join(_VERBS), required=True)
    for name, (what, command) in _VERBS.items():
        sub = verbs.add_parser(
            name, help=what, description=command.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        command.add_arguments(sub)
