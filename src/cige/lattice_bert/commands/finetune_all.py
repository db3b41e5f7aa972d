"""Fine-tune on all tasks and print the paper's Table 6 and its row of Table 1.

With --grid lr, the best learning rate of each task is searched on the development examples. All of the paper's nine
learning rates are tried, except those below three neighbours with increasing scores or above three with decreasing
scores (its appendix C.2). Then the best one is run several times. The paper fine-tunes the model after the first phase
of pre-training (--short-model) on all tasks except CMRC and C3.

Finished runs are not repeated: after an interruption, the same command continues, and with more tasks or runs it does
only what is new. Results of other tasks from earlier calls stay in the tables, so you can run tasks with different
options one after another. Scores and answers of every run are in OUTPUT/TASK-RATE-SEED, and all results in
OUTPUT/results.json and OUTPUT/tables.md.

Examples:
  cige lattice-bert finetune all --model runs/tiny/model --data data --output runs/finetuned/tiny --grid lr --runs 5
  cige lattice-bert finetune all --model runs/tiny/model --data data --output runs/trial --tasks wsc --lr 1e-4 --runs 3
"""

from __future__ import annotations

import argparse
from pathlib import Path

from cige.commands.options import at_least
from cige.errors import CigeError, DataError
from cige.lattice_bert.commands.finetune_task import add_shared_options, settings_of
from cige.lattice_bert.tasks.config import LEARNING_RATES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_shared_options(parser)
    parser.add_argument(
        "--short-model", metavar="FOLDER", help="model of the first phase, for all tasks except CMRC and C3"
    )
    parser.add_argument(
        "--tasks",
        nargs="+",
        action="extend",
        metavar="TASK",
        help="tasks (default: the paper's tasks whose data is available)",
    )
    parser.add_argument(
        "--grid", choices=("lr",), help="search the learning rate; otherwise --lr or the task's is used"
    )
    parser.add_argument(
        "--rates",
        nargs="+",
        action="extend",
        type=float,
        metavar="RATE",
        help="learning rates to try (default: the paper's nine)",
    )
    parser.add_argument(
        "--runs", type=at_least(1), metavar="N", help="runs with the best learning rate (default: 5; 1 for ChID)"
    )
    parser.add_argument("--name", help="name of the model in tables (default: that of the output folder)")
    parser.add_argument("--keep-models", action="store_true", help="keep the model folder of every run")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    from cige.folders.atomic import atomic_file
    from cige.folders.hub import model_folder
    from cige.lattice_bert.tasks.registry import PAPER_TASKS, get_task
    from cige.lattice_bert.tasks.task_data import find_folder, load_task_data

    if args.rates and not args.grid:
        raise CigeError("--rates are what --grid lr chooses from; give --grid lr too, or a single rate with --lr")
    tasks = [get_task(name) for name in args.tasks or PAPER_TASKS]
    if args.tasks is None:
        tasks = [task for task in tasks if find_folder(task, args.data) is not None]
    if not tasks:
        raise DataError(f"no data of any task in {args.data}; expected folders such as {PAPER_TASKS[0]} in it")
    # Imports torch, which what is refused above does not need.
    from cige.lattice_bert.tasks.finetune import model_fingerprint
    from cige.lattice_bert.tasks.grid import GridResult, tables, tune_task

    folder, model = Path(args.output), model_folder(args.model)
    short_model = model_folder(args.short_model) if args.short_model else model
    origin = [model_fingerprint(model), model_fingerprint(short_model)]
    result = GridResult.begin(folder, args.name or folder.name, origin)
    for task in tasks:
        config = settings_of(task.recipe, args)
        row = tune_task(
            load_task_data(task, args.data),
            model if task.reads_long else short_model,
            folder,
            config=config,
            rates=(args.rates or LEARNING_RATES) if args.grid else [config.optimizer.learning_rate],
            n_runs=args.runs or task.n_runs,
            keep_models=args.keep_models,
            device=args.device,
        )
        result = result.with_row(row)
        result.save(folder)
        with atomic_file(folder / "tables.md") as aside:
            aside.write_text(tables([result]), encoding="utf-8")
    print(tables([result]))
