"""Search hyper-parameters: train with random choices of settings and keep the best by dev F1.

  cige search weibo/flat --output runs/search --n-trials 20
  cige search weibo/flat --output runs/search --n-trials 20 --space space.yaml --seeds 1 2 3

The ranges are those of Table 6 of the FLAT paper (search/table6), or of a YAML file of lines such as
`batches.batch_size: [8, 10]`. If a search is interrupted, run the same command again to continue; a larger --n-trials
adds trials.
"""

from __future__ import annotations

import argparse

from cige.commands.options import at_least, seed
from cige.commands.train import add_recipe_options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_recipe_options(parser)
    parser.add_argument("--output", "-o", required=True, metavar="FOLDER", help="folder of the search")
    parser.add_argument("--n-trials", type=at_least(1), default=20, metavar="N", help="number of trials (default: 20)")
    parser.add_argument("--space", metavar="FILE", help="YAML file of settings and their values (default: Table 6)")
    parser.add_argument("--seeds", type=seed, nargs="+", default=[1], help="training seeds of each trial (default: 1)")


def run(args: argparse.Namespace) -> None:
    from cige.training.recipe import load_recipe

    load_recipe(args.recipe, args.set)  # before torch is imported, so that a wrong key is reported at once
    from cige.training.search import read_space, search

    result = search(
        args.recipe,
        args.output,
        n_trials=args.n_trials,
        space=read_space(args.space) if args.space else None,
        seeds=args.seeds,
        overrides=args.set,
        data_dir=args.data_dir,
        device=args.device,
    )
    for trial in result.trials:
        print(f"{100 * trial.dev_f1:.2f}  {'  '.join(f'{key}={value}' for key, value in trial.settings.items())}")
    print(f"best recipe in {result.best_recipe}")
