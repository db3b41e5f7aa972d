"""Write the mean of the weights of several models that were trained from the same model (a "model soup").

Train with one recipe and several seeds, all from the same `start_from`, and average the runs: the mean is often as good
as the best of them or better, and as fast as one. Measure it on development sentences, and calibrate it.

Examples:
  cige average runs/1/model runs/2/model --output mean
  cige evaluate --data dev.bmes --model mean
"""

from __future__ import annotations

import argparse
import os

from cige.commands.options import flat_tagger_folder
from cige.errors import ModelError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("models", nargs="+", metavar="MODEL", help="model folders, two or more")
    parser.add_argument("--output", required=True, metavar="FOLDER", help="folder to write")


def run(args: argparse.Namespace) -> None:
    folders = [flat_tagger_folder(model) for model in args.models]
    if any(os.path.realpath(folder) == os.path.realpath(args.output) for folder in folders):
        raise ModelError(f"--output {args.output}: one of the models to average; give another folder")
    from cige.models.mean import mean_model
    from cige.models.model import LatticeModel

    mean_model([LatticeModel.load(folder) for folder in folders]).save(args.output)
    print(f"{args.output}: the mean of {len(args.models)} models")
