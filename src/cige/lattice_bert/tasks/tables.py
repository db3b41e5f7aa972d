"""The paper's Table 6 (best learning rate, mean, sd) and Table 1 (one row per model) in Markdown, from grid results.

Scores are in per cent. A task with several scores counts once in an average, with the mean of its scores, as in the
paper.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from cige.lattice_bert.tasks.grid import GridResult, TaskRow
from cige.lattice_bert.tasks.metrics import mean_and_sd
from cige.lattice_bert.tasks.registry import TASKS

SHORT_NAMES = {"accuracy": "", "f1": "F1", "em": "EM", "label_f1": "LF1", "entity_f1": "EF1", "word_f1": "F1"}


def tables(results: Sequence[GridResult]) -> str:
    """Both tables, and a description of the data of each task."""
    states = {row.task: row.data for result in results for row in result.rows}
    notes = [f"- {TASKS[task].title}: {state}" for task, state in states.items()]
    return "\n".join([*(table_6(result) for result in results), table_1(results), "Data:", *notes, ""])


def table_6(result: GridResult) -> str:
    """Best learning rate, and mean and standard deviation over runs on development and test examples."""
    lines = [
        f"**{result.name}**: best learning rate, mean and standard deviation over runs",
        "",
        "| task | data | best lr | runs | dev | sd | test | sd |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in result.rows:
        for number, name in enumerate(row.dev):
            title = "/".join(filter(None, [TASKS[row.task].title, SHORT_NAMES[name]]))
            kind_of_data = row.data.partition(" ")[0].rstrip(":,")
            head = f"| {title} | {kind_of_data} | {row.learning_rate:g} | {row.n_runs}" if not number else None
            dev = _mean_sd(row.dev[name])
            test = _mean_sd(row.test[name]) if name in row.test else "- | -"
            lines.append(f"{head or f'| {title} | | - | -'} | {dev} | {test} |")
    lines.append(f"| Average | | | | {_average(result.rows, 'dev')} | | {_average(result.rows, 'test')} | |")
    return "\n".join([*lines, ""])


def table_1(results: Sequence[GridResult]) -> str:
    """One row per model: its mean test score on each task, or its development score, marked *.

    As in the paper, the scores are accuracy or exact match for CLUE's tasks, label-level F1 for NER, and F1 for
    segmentation.
    """
    names = [name for name in TASKS if any(row.task == name for result in results for row in result.rows)]
    lines = [
        "| model | " + " | ".join(TASKS[name].title for name in names) + " | average |",
        "|---|" + "---|" * (len(names) + 1),
    ]
    for result in results:
        rows = {row.task: row for row in result.rows}
        cells = [_deciding_cell(rows[name]) if name in rows else ("-", None) for name in names]
        values = [value for _, value in cells if value is not None]
        average = f"{100 * statistics.fmean(values):.1f}" if len(values) == len(names) else "-"
        lines.append(f"| {result.name} | " + " | ".join(text for text, _ in cells) + f" | {average} |")
    return "\n".join([*lines, "", "\\* development examples", ""])


def _deciding_cell(row: TaskRow) -> tuple[str, float]:
    scores = row.test or row.dev
    kind = TASKS[row.task].kind
    name = {"reading": "em", "segmentation": "word_f1", "entities": "label_f1"}.get(kind, "accuracy")
    mean = statistics.fmean(scores[name])
    return f"{100 * mean:.1f}{'' if row.test else '*'}", mean


def _mean_sd(values: Sequence[float]) -> str:
    mean, sd = mean_and_sd(values)
    return f"{100 * mean:.1f} | {100 * sd:.1f}"


def _average(rows: Sequence[TaskRow], split: str) -> str:
    scores = [getattr(row, split) for row in rows]
    means = [statistics.fmean(value for values in one.values() for value in values) for one in scores if one]
    return f"{100 * statistics.fmean(means):.1f}" if len(means) == len(rows) and rows else "-"
