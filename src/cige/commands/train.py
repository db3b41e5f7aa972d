"""Train a model by a recipe.

  cige train recipes/weibo/flat.yaml --output runs/weibo --seed 1
  cige train recipes/weibo/flat.yaml --output runs/trial --set training.n_epochs=2 data.n_train=100

A run that was cut off goes on where it stopped when the same command is given again. The model is in OUTPUT/model.
"""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_recipe_options(parser)
    parser.add_argument("--output", "-o", required=True, metavar="FOLDER", help="folder of the run")
    parser.add_argument("--seed", type=int, default=1, help="(default: 1)")
    parser.add_argument("--no-resume", action="store_true", help="start over, whatever the output folder holds")
    parser.set_defaults(run=run)


def add_recipe_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recipe", metavar="RECIPE", help="YAML file, such as recipes/weibo/flat.yaml")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="change settings of the recipe")
    parser.add_argument("--data-dir", metavar="FOLDER", help="data sets and vectors ($CIGE_DATA, then the cache)")
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"), help="(default: auto)")


def run(args: argparse.Namespace) -> None:
    from cige.training.recipe import load_recipe

    recipe = load_recipe(args.recipe, args.set)  # before transformers is imported: a wrong key is told sooner
    from cige.training.train import train

    result = train(
        recipe, args.output, seed=args.seed, data_dir=args.data_dir, device=args.device, resume=not args.no_resume
    )
    print(
        f"{result.name}, seed {result.seed}: dev F1 {100 * result.dev_f1:.2f} after epoch {result.best_epoch}, "
        f"{result.minutes:.1f} minutes; model in {result.model}"
    )
