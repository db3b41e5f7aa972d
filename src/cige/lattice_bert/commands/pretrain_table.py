"""Print the results of finished pre-training runs on held-out text as a Markdown table.

The last three columns are the accuracy on tokens of fully masked segments, on their characters, and on the order of two
texts. Characters and order can be compared between models with and without words; the other columns cannot.

Examples:
  cige lattice-bert pretrain table runs/tiny runs/tiny_bert_our
  cige lattice-bert pretrain table runs/tiny runs/tiny_no_msp runs/tiny_bert_our --curves curves.svg
"""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folders", nargs="+", metavar="RUN", help="output folders of `cige lattice-bert pretrain run`")
    parser.add_argument(
        "--curves", type=Path, metavar="FILE", help="draw characters and order over steps (.svg, .png, .pdf)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    from cige.engine.run_folder import read_result
    from cige.lattice_bert.pretraining.pretrain import PretrainResult
    from cige.lattice_bert.pretraining.views import draw_curves, held_out_table

    results = [read_result(folder, PretrainResult) for folder in args.folders]
    print(held_out_table(results))
    if args.curves:
        draw_curves(results, args.curves)
