"""Train a model on your own labelled data, starting from the bundled model, or with a recipe.

  cige train --data train.bmes --dev dev.bmes --output runs/own
  cige train --data cluener.json --output runs/own --labels name=PER company=COMPANY address=LOC
  cige train weibo/flat --output runs/weibo --seed 1
  cige train weibo/flat --output runs/trial --set training.n_epochs=2 data.n_train=100

A recipe is a name that `cige recipes list` prints, or a YAML file of your own (`cige recipes copy` makes one). Without
a recipe, training starts from the bundled model's words, vectors and encoder, whatever your labels are; no vector file
is needed. If your labels mean the same as labels of that model, rename them by --labels: what it knows of them is kept.

If a run is interrupted, run the same command again: it continues where it stopped. The model is in OUTPUT/model.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from cige.commands.evaluate import add_label_option, read_label_map
from cige.commands.options import add_no_resume_option, add_set_option, seed
from cige.errors import CigeError

if TYPE_CHECKING:
    from cige.commands.start_model import StartModel
    from cige.training.recipe import Recipe


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_recipe_options(parser, optional=True)
    parser.add_argument(
        "--data",
        metavar="FILE",
        help="labelled sentences to train on (a file or folder), instead of those of the recipe",
    )
    parser.add_argument("--dev", metavar="FILE", help="labelled sentences for choosing the epoch (default: last tenth)")
    add_label_option(
        parser,
        help="data label = label to train, for labels of --data that have another name in the model to start from, "
        "separated by spaces or commas; NAME= leaves a label out",
    )
    parser.add_argument("--output", "-o", required=True, metavar="FOLDER", help="folder of the run")
    parser.add_argument("--seed", type=seed, default=1, help="(default: 1)")
    add_no_resume_option(parser)


def add_recipe_options(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    parser.add_argument(
        "recipe", metavar="RECIPE", nargs="?" if optional else None, help="name, such as weibo/flat, or YAML file"
    )
    add_set_option(parser)
    parser.add_argument(
        "--data-dir",
        metavar="FOLDER",
        help="folder of data sets and vectors (default: $CIGE_DATA, otherwise the cache)",
    )
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (default: auto)")


def run(args: argparse.Namespace) -> None:
    from cige.recipes.recipe_file import override_pairs
    from cige.recipes.shipped import OWN_DATA
    from cige.training.files import own_data_settings
    from cige.training.recipe import load_recipe

    if args.dev is not None and args.data is None:
        raise CigeError("--dev requires --data FILE; a recipe specifies its own development file")
    if args.labels and args.data is None:
        raise CigeError("--labels requires --data FILE; a recipe states the labels of its data itself")
    if args.recipe is None and args.data is None:
        raise CigeError("nothing to train on: give a recipe, or --data FILE with labelled sentences")
    train_file, dev_file = _renamed_files(args) if args.labels else (args.data, args.dev)
    data_settings = {} if args.data is None else own_data_settings(train_file, dev_file)
    overrides = data_settings | dict(override_pairs(args.set))
    # Before torch is imported, so that errors are reported at once.
    recipe = load_recipe(args.recipe or OWN_DATA, overrides)
    from cige.recipes.spans import show_duration
    from cige.training.train import train

    start = None if args.data is None else _start_model(args, recipe)
    before = None if start is None else start.dev_f1()
    result = train(
        recipe, args.output, seed=args.seed, data_dir=args.data_dir, device=args.device, resume=not args.no_resume
    )
    was = "" if before is None else f" ({100 * before:.2f} before training)"
    print(
        f"{result.name}, seed {result.seed}: dev F1 {100 * result.dev_f1:.2f} after epoch {result.best_epoch}{was}, "
        f"{show_duration(result.seconds)}; model in {result.model}"
    )
    if start is not None and before is not None:
        start.note_loss(before, result.dev_f1)


def _renamed_files(args: argparse.Namespace) -> tuple[str, str | None]:
    """The files of --data and --dev with the labels of --labels, in the folder of the run."""
    from cige.commands.start_model import mapped_file
    from cige.data import read_sentences
    from cige.engine.run_folder import refuse_foreign

    # Training refuses nested entities itself if its head cannot learn them.
    train, dev = (None if path is None else read_sentences(path, nested=True) for path in (args.data, args.dev))
    labels = read_label_map(args, [*(train or ()), *(dev or ())], args.data)
    refuse_foreign(Path(args.output))
    return (
        mapped_file(train or (), labels, args.output, "train"),
        None if dev is None else mapped_file(dev, labels, args.output, "dev"),
    )


def _start_model(args: argparse.Namespace, recipe: Recipe) -> StartModel | None:
    """The model that training starts from, whose labels are compared with those of the data; None if there is none."""
    from cige.commands.start_model import StartModel
    from cige.data import read_sentences
    from cige.entities.labels import parse_label_map
    from cige.folders.in_use import is_main_process

    data = recipe.data
    if recipe.start_from is None or data.train is None or not is_main_process():
        return None
    nested = recipe.head == "pair_grid"
    sentences = read_sentences(data.train, nested=nested)
    n_train = len(sentences) - data.n_held_out
    dev = sentences[n_train:] if data.dev is None else read_sentences(data.dev, nested=nested)
    labels = parse_label_map(args.labels, may_drop=True)
    start = StartModel(recipe, sentences[:n_train], dev, labels)
    start.note_labels()
    return start
