"""Compare fine-tuned models on subsets where words may matter: the paper's analyses of TNEWS, CSL and MSRA NER.

For classification, the analysis is accuracy by length. For CSL, it is accuracy where keywords contain more than two
lattice words, and on the rest; words are those of the first model that reads words. For entities, it is the number of
wrong entities, and of those nested with gold entities. The other models are compared with the first one, which is
BERT-our in the paper. Give the runs of a model with several seeds together: tables then show means and standard
deviations.

Examples:
  cige lattice-bert finetune analyse tnews --model runs/our_tnews/model --model runs/tnews/model --data data
  cige lattice-bert finetune analyse tnews --model runs/our_tnews --model runs/tnews --data data --edges 10 20 30
  cige lattice-bert finetune analyse msra --model runs/our_1 runs/our_2 --model runs/lattice_{1,2} --data data
  cige lattice-bert finetune analyse msra --model runs/our_msra/model --model runs/msra/model --data data --json
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cige.commands.options import at_least, make_console
from cige.errors import DataError
from cige.json_text import to_json

if TYPE_CHECKING:
    from rich.table import Table

    from cige.lattice_bert.tasks.analysis import EntityErrors, Group
    from cige.lattice_bert.tasks.registry import Task
    from cige.lattice_bert.tasks.tuned import TunedModel


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="task on which the models were fine-tuned")
    parser.add_argument(
        "--model",
        "-m",
        dest="models",
        action="append",
        nargs="+",
        required=True,
        metavar="FOLDER",
        help="fine-tuned model, or its runs with several seeds; give two or more models",
    )
    parser.add_argument("--data", required=True, metavar="FOLDER", help="folder with the data of tasks")
    parser.add_argument("--split", default="dev", choices=("train", "dev", "test"), help="(default: dev)")
    bins = parser.add_mutually_exclusive_group()
    bins.add_argument("--bins", type=at_least(1), metavar="N", help="number of length bins of equal size (default: 5)")
    bins.add_argument(
        "--edges", type=at_least(1), nargs="+", action="extend", metavar="N", help="lengths at which new bins begin"
    )
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1 ... (default: cpu)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    from cige.lattice_bert.tasks.analysis import LENGTH, NESTED, analysis_of
    from cige.lattice_bert.tasks.registry import get_task
    from cige.lattice_bert.tasks.task_data import load_split

    task = get_task(args.task)
    analysis = analysis_of(task)
    if analysis != LENGTH and (args.bins or args.edges):
        raise DataError(f"--bins and --edges are about {LENGTH}; the analysis of {task.name} is {analysis}")
    if len(args.models) < 2:
        raise DataError("one model was given; an analysis compares two or more, so give --model again")
    # Before torch is imported, so that a wrong folder is reported at once.
    examples = load_split(task, args.data, args.split)
    runs = [[_load(folder, task, args.device) for folder in folders] for folders in args.models]
    if not all(map(runs[0][0].kind.is_labelled, examples)):
        raise DataError(f"the {args.split} examples of {task.name} have no labels to compare with; use --split dev")
    result, table = (_nested if analysis == NESTED else _groups)(args, task, runs, examples)
    if args.json:
        head = {"task": task.name, "split": args.split, "analysis": analysis, "n_examples": len(examples)}
        models = []
        for folders, of_model in zip(args.models, runs, strict=True):
            facts = {"model": folders[0], "data": of_model[0].facts.get("data")}
            models.append(facts | ({"runs": folders} if len(folders) > 1 else {}))
        print(to_json(head | {"models": models} | result, indent=1))
        return
    make_console().print(table)
    for name, of_model in zip(_names(args), runs, strict=True):
        print(f"{name}: data of fine-tuning: {of_model[0].facts.get('data', 'not known')}")


def _names(args: argparse.Namespace) -> list[str]:
    return [first + (f" and {len(more)} more" if more else "") for first, *more in args.models]


def _answers(runs: Sequence[Sequence[TunedModel]], examples: list[Any]) -> list[list[Any]]:
    return [model.predict(examples) for of_model in runs for model in of_model]


def _groups(
    args: argparse.Namespace, task: Task, runs: Sequence[Sequence[TunedModel]], examples: list[Any]
) -> tuple[dict[str, Any], Table]:
    """Accuracy on groups of examples: by length, or by the number of words in keywords."""
    from cige.lattice_bert.tasks import analysis

    facts: dict[str, Any]
    if analysis.analysis_of(task) == analysis.LENGTH:
        length = analysis.length_of(task)
        n_bins = args.bins or analysis.N_BINS
        edges = sorted(set(args.edges or ())) or analysis.equal_edges(list(map(length, examples)), n_bins)
        groups = analysis.by_length(examples, _answers(runs, examples), length=length, edges=edges)
        facts, title, heading = {"edges": edges}, analysis.LENGTH, "characters"
    else:
        reader = next((k for k, of_model in enumerate(runs) if of_model[0].pretrained.vocabulary.n_words), None)
        if reader is None:
            raise DataError(
                f"none of {', '.join(_names(args))} has words in its vocabulary, so the number of words in a keyword "
                "is not known; include a fine-tuned Lattice-BERT"
            )
        groups = analysis.by_keyword_words(examples, _answers(runs, examples), runs[reader][0].tokenizer)
        words_of = args.models[reader][0]
        facts, title, heading = {"words_of": words_of}, f"{analysis.KEYWORDS}, those of {words_of}", "examples with"
    groups = analysis.groups_over_runs(groups, list(map(len, runs)))
    table = _group_table(f"{task.title} {args.split}: {title}", heading, _names(args), groups)
    return facts | {"groups": [group.to_dict() for group in groups]}, table


def _nested(
    args: argparse.Namespace, task: Task, runs: Sequence[Sequence[TunedModel]], examples: list[Any]
) -> tuple[dict[str, Any], Table]:
    """Counts of each model's wrong entities, and by how many per cent the first model's errors are reduced."""
    from rich.table import Table

    from cige.lattice_bert.tasks.analysis import NESTED, errors_over_runs, nested_errors, reduction

    errors = errors_over_runs(nested_errors(examples, _answers(runs, examples)), list(map(len, runs)))
    heads = ("model", "predicted", "wrong", "fewer, %", "nested with gold", "fewer, %")
    table = _right_aligned(Table(*heads, title=f"{task.title} {args.split}: {NESTED}"))
    first, rows = errors[0], []
    for number, (name, of_model) in enumerate(zip(_names(args), errors, strict=True)):
        wrong, nested = reduction(first.n_wrong, of_model.n_wrong), reduction(first.n_nested, of_model.n_nested)
        rows.append(of_model.to_dict() | {"fewer_wrong": wrong, "fewer_nested": nested})
        fewer_wrong, fewer_nested = (_per_cent(share) if number else "" for share in (wrong, nested))
        predicted, n_wrong, n_nested = _counts(of_model)
        table.add_row(name, predicted, n_wrong, fewer_wrong, n_nested, fewer_nested)
    return {"errors": rows}, table


def _load(folder: str, task: Task, device: str) -> TunedModel:
    from cige.lattice_bert.tasks.tuned import TunedModel

    model = TunedModel.from_pretrained(folder, device=device)
    if model.task != task.name:
        raise DataError(f"{folder} was fine-tuned on {model.task}, expected a model for {task.name}")
    return model


def _group_table(title: str, heading: str, models: Sequence[str], groups: Sequence[Group]) -> Table:
    """Accuracy of each model in per cent, and the gain of each other model over the first in points."""
    from rich.table import Table

    heads = [heading, "examples", models[0], *(head for name in models[1:] for head in (name, "gain"))]
    table = _right_aligned(Table(*heads, title=title))
    for number, group in enumerate(groups):
        if number == len(groups) - 1:
            table.add_section()
        sds = [f" ± {100 * sd:.2f}" for sd in group.sds] or [""] * len(models)
        first, *others = (_per_cent(a) + sd for a, sd in zip(group.accuracies, sds, strict=True))
        gains = (_per_cent(gain, sign="+") for gain in group.gains)
        pairs = (cell for pair in zip(others, gains, strict=True) for cell in pair)
        table.add_row(group.name, f"{group.n_examples:,}", first, *pairs)
    return table


def _right_aligned(table: Table) -> Table:
    """The table, with numbers in all columns except the first."""
    for column in table.columns[1:]:
        column.justify = "right"
    return table


def _counts(errors: EntityErrors) -> list[str]:
    if not errors.sds:
        return [f"{count:,}" for count in errors.counts]
    return [f"{count:,.1f} ± {sd:.1f}" for count, sd in zip(errors.counts, errors.sds, strict=True)]


def _per_cent(share: float | None, *, sign: str = "") -> str:
    return "-" if share is None else f"{100 * share:{sign}.2f}"
