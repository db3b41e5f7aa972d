"""Fine-tune on one task with the paper's settings for it, or your own.

A run that was cut off continues from its last checkpoint when the same command is given again. The model is in
OUTPUT/model, and the scores are in OUTPUT/result.json.

Examples:
  cige finetune tnews --model runs/tiny/model --data data --output runs/tnews
  cige finetune afqmc --model runs/tiny/model --data data --output runs/trial --n-train 1000 --epochs 2 --lr 1e-4
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cige.tasks.config import TuningConfig

# option, setting of TuningConfig, type, help
_SETTINGS = (
    ("--lr", "optimizer.learning_rate", float, "highest learning rate"),
    ("--epochs", "training.n_epochs", int, "passes over the training examples"),
    ("--batch-size", "batches.batch_size", int, "examples per step"),
    ("--max-tokens", "max_tokens", int, "lattice tokens of an input"),
    ("--max-pieces", "max_pieces", int, "characters and word pieces of an input"),
    ("--n-train", "n_train", int, "learn from the first n training examples only"),
    ("--n-dev", "n_dev", int, "measure on the first n development and test examples only"),
    ("--precision", "training.precision", str, "fp32 or bf16"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_shared_options(parser)
    parser.add_argument("--seed", type=int, default=1, help="(default: 1)")
    parser.add_argument("--no-resume", action="store_true", help="start over, whatever the output folder holds")
    parser.set_defaults(run=run)


def add_shared_options(parser: argparse.ArgumentParser) -> None:
    """Those of tuning one task and of tuning all."""
    parser.add_argument("--model", "-m", required=True, metavar="FOLDER", help="pre-trained model, or its hub id")
    parser.add_argument("--data", required=True, metavar="FOLDER", help="folder that holds those of tasks")
    parser.add_argument("--output", "-o", required=True, metavar="FOLDER", help="folder of the run")
    for option, setting, kind, what in _SETTINGS:
        choices = ("fp32", "bf16") if setting == "training.precision" else None
        metavar = None if choices else "N"
        parser.add_argument(
            option, dest=setting, type=kind, choices=choices, metavar=metavar, help=f"{what} (the task's)"
        )
    parser.add_argument("--crf", action="store_const", const=True, help="sequence labelling: a CRF, not a softmax")
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"), help="(default: auto)")


def with_options(config: TuningConfig, args: argparse.Namespace) -> TuningConfig:
    """A task's settings, changed to those that were given."""
    from cige.engine.strict import changed

    given = {key: getattr(args, key) for key in (*(key for _, key, _, _ in _SETTINGS), "crf")}
    return changed(config, {key: value for key, value in given.items() if value is not None})


def run(args: argparse.Namespace) -> None:
    from cige.tasks.registry import get_task
    from cige.tasks.task_data import load_task_data

    task = get_task(args.task)
    config = with_options(task.config, args)
    data = load_task_data(task, args.data)  # before torch is imported: a wrong file is reported at once
    from cige.engine.spans import show_duration
    from cige.tasks.finetune import finetune

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
