"""Train a model on your own labelled data, starting from the bundled model, or with a recipe.

  cige train --data train.bmes --dev dev.bmes --output runs/own
  cige train weibo/flat --output runs/weibo --seed 1
  cige train weibo/flat --output runs/trial --set training.n_epochs=2 data.n_train=100

A recipe is a name that `cige recipes list` prints, or a YAML file of your own (`cige recipes copy` makes one). Without
a recipe, training starts from the bundled model's words, vectors and encoder, whatever your labels are; no vector file
is needed. If a run is interrupted, run the same command again: it continues where it stopped. The model is in
OUTPUT/model.
"""

from __future__ import annotations

import argparse

from cige.errors import CigeError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_recipe_options(parser, optional=True)
    parser.add_argument(
        "--data",
        metavar="FILE",
        help="labelled sentences to train on (a file or folder), instead of those of the recipe",
    )
    parser.add_argument("--dev", metavar="FILE", help="labelled sentences for choosing the epoch (default: last tenth)")
    parser.add_argument("--output", "-o", required=True, metavar="FOLDER", help="folder of the run")
    parser.add_argument("--seed", type=int, default=1, help="(default: 1)")
    parser.add_argument(
        "--no-resume", action="store_true", help="start from the beginning, even if the output folder has checkpoints"
    )
    parser.set_defaults(run=run)


def add_recipe_options(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    parser.add_argument(
        "recipe", metavar="RECIPE", nargs="?" if optional else None, help="name, such as weibo/flat, or YAML file"
    )
    parser.add_argument(
        "--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help="change settings of the recipe"
    )
    parser.add_argument("--data-dir", metavar="FOLDER", help="data sets and vectors ($CIGE_DATA, then the cache)")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (default: auto)")


def run(args: argparse.Namespace) -> None:
    from cige.recipes.recipe_file import override_pairs
    from cige.recipes.shipped import OWN_DATA
    from cige.training.own_data import own_data_settings
    from cige.training.recipe import load_recipe

    if args.dev is not None and args.data is None:
        raise CigeError("--dev requires --data FILE; a recipe specifies its own development file")
    if args.recipe is None and args.data is None:
        raise CigeError("nothing to train on: give a recipe, or --data FILE with labelled sentences")
    own = {} if args.data is None else own_data_settings(args.data, args.dev)
    overrides = own | dict(override_pairs(args.set))
    recipe = load_recipe(
        args.recipe or OWN_DATA, overrides
    )  # before torch is imported, so that errors are reported at once
    from cige.recipes.spans import show_duration
    from cige.training.train import train

    result = train(
        recipe, args.output, seed=args.seed, data_dir=args.data_dir, device=args.device, resume=not args.no_resume
    )
    print(
        f"{result.name}, seed {result.seed}: dev F1 {100 * result.dev_f1:.2f} after epoch {result.best_epoch}, "
        f"{show_duration(result.seconds)}; model in {result.model}"
    )
