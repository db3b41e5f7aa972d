"""Fine-tune on one task, by its recipe with the paper's settings or by your own recipe.

If a run is interrupted, run the same command again: it continues from its last checkpoint. The model is in
OUTPUT/model, and the scores are in OUTPUT/result.json.

Examples:
  cige lattice-bert finetune tnews --model runs/tiny/model --data data --output runs/tnews
  cige lattice-bert finetune afqmc --model runs/tiny/model --data data --output runs/trial --n-train 1000 --lr 1e-4
  cige recipes copy finetune/tnews mine.yaml
  cige lattice-bert finetune tnews --recipe mine.yaml --model runs/tiny/model --data data --output runs/mine
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cige.commands.options import add_no_resume_option, add_set_option, seed
from cige.recipes.settings import Settings

if TYPE_CHECKING:
    from cige.lattice_bert.tasks.config import TuningConfig

# option, setting of TuningConfig, type, help
_SETTINGS = (
    ("--lr", "optimizer.learning_rate", float, "peak learning rate"),
    ("--epochs", "training.n_epochs", int, "passes over the training examples"),
    ("--batch-size", "batches.batch_size", int, "examples per step"),
    ("--max-tokens", "max_tokens", int, "maximum lattice tokens of an input"),
    ("--max-pieces", "max_pieces", int, "maximum characters and word pieces of an input"),
    ("--n-train", "n_train", int, "train on the first n training examples only"),
    ("--n-dev", "n_dev", int, "evaluate on the first n development and test examples only"),
    ("--precision", "training.precision", str, "fp32 or bf16"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_shared_options(parser)
    parser.add_argument("--recipe", metavar="RECIPE", help="name or YAML file (default: the task's, finetune/TASK)")
    parser.add_argument("--seed", type=seed, default=1, help="(default: 1)")
    add_no_resume_option(parser)
    parser.set_defaults(run=run)


def add_shared_options(parser: argparse.ArgumentParser) -> None:
    """Options of fine-tuning on one task and on all tasks."""
    parser.add_argument("--model", "-m", required=True, metavar="FOLDER", help="pre-trained model, or its hub id")
    parser.add_argument("--data", required=True, metavar="FOLDER", help="folder with the data of tasks")
    parser.add_argument("--output", "-o", required=True, metavar="FOLDER", help="folder of the run")
    for option, setting, kind, what in _SETTINGS:
        choices = ("fp32", "bf16") if setting == "training.precision" else None
        metavar = None if choices else "N"
        parser.add_argument(
            option, dest=setting, type=kind, choices=choices, metavar=metavar, help=f"{what} (default: the task's)"
        )
    add_set_option(parser)
    parser.add_argument(
        "--crf", action="store_const", const=True, help="sequence labelling: a CRF instead of a softmax"
    )
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (default: auto)")


def settings_of(recipe: str, args: argparse.Namespace) -> TuningConfig:
    """The settings of a recipe, overridden by --set and by options, which take precedence over --set."""
    from cige.lattice_bert.tasks.config import load_tuning_config
    from cige.recipes.recipe_file import override_pairs

    given: Settings = dict(override_pairs(args.set))
    for field in (*(field for _, field, _, _ in _SETTINGS), "crf"):
        if getattr(args, field) is not None:
            given[field] = getattr(args, field)
    return load_tuning_config(recipe, given)


def run(args: argparse.Namespace) -> None:
    from cige.lattice_bert.tasks.registry import get_task
    from cige.lattice_bert.tasks.task_data import load_task_data

    task = get_task(args.task)
    config = settings_of(args.recipe or task.recipe, args)
    data = load_task_data(task, args.data)  # before torch is imported: a wrong file is reported at once
    from cige.lattice_bert.tasks.finetune import finetune
    from cige.recipes.spans import show_duration

    result = finetune(
        data,
        args.model,
        args.output,
        config=config,
        seed=args.seed,
        device=args.device,
        resume=not args.no_resume,
    )
    print(f"{task.title} ({result.data}), seed {result.seed}, learning rate {result.learning_rate:g}")
    for split, scores in (("dev", result.dev), ("test", result.test)):
        if scores:
            print(f"{split}: " + ", ".join(f"{name} {100 * value:.2f}" for name, value in scores.items()))
    print(f"best epoch {result.best_epoch}, {show_duration(result.seconds)}; model in {result.model}")
