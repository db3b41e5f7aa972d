"""Grid: fine-tune on every task with the best of several learning rates and several seeds (the paper's Tables 6 and 1).

Runs are stored in OUTPUT/TASK-RATE-SEED. Finished runs are read and interrupted runs are resumed, so a search that was
interrupted continues when it is started again, and one with more tasks, learning rates or runs does only what is new.

In the tables, scores are in per cent. A task with several scores counts once in an average, with the mean of its
scores, as in the paper.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cige.errors import CigeError
from cige.folders.atomic import atomic_file
from cige.json_text import to_json
from cige.lattice_bert.tasks.config import TuningConfig
from cige.lattice_bert.tasks.finetune import TuningResult, finetune
from cige.lattice_bert.tasks.metrics import mean_and_sd
from cige.lattice_bert.tasks.registry import TASKS, get_task
from cige.lattice_bert.tasks.task_data import TaskData
from cige.recipes.strict import changed

RESULTS = "results.json"


@dataclass(frozen=True)
class TaskRow:
    """A task with its best learning rate.

    Attributes:
        task: name of the task; data: whether the data is the full data set, a part of it or a stand-in.
        learning_rate: the best learning rate; tried: maps each learning rate to the deciding development score of its
            first run, 0..1.
        dev, test: maps the name of each score to its values (0..1) in the runs with the best learning rate; `test` is
            {} without labelled examples.
    """

    task: str
    data: str
    learning_rate: float
    tried: dict[float, float]
    dev: dict[str, list[float]]
    test: dict[str, list[float]]

    @property
    def n_runs(self) -> int:
        return len(next(iter(self.dev.values())))


@dataclass(frozen=True)
class GridResult:
    """The tasks of one pre-trained model."""

    name: str  # of the model in tables
    rows: tuple[TaskRow, ...]  # one per task, in the order of the paper's tables
    origin: tuple[str, ...] = ()  # fingerprints of the pre-trained model and of that of the first phase

    def with_row(self, row: TaskRow) -> GridResult:
        """A copy in which `row` replaces the row of its task, or is added."""
        rows = {of_task.task: of_task for of_task in (*self.rows, row)}
        return replace(self, rows=tuple(rows[name] for name in TASKS if name in rows))

    def save(self, folder: Path) -> None:
        with atomic_file(folder / RESULTS) as aside:
            aside.write_text(to_json(asdict(self), indent=1), encoding="utf-8")

    @classmethod
    def read(cls, folder: str | Path) -> GridResult:
        """Read what `save` wrote; raises CigeError if there is no such result."""
        path = Path(folder) / RESULTS
        if not path.is_file():
            raise CigeError(
                f"{folder}: no {RESULTS} in it; expected the output folder of `cige lattice-bert finetune all`"
            )
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            rows = tuple(_read_row(row) for row in values["rows"])
            return cls(values["name"], rows, tuple(values["origin"]))
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as reason:
            raise CigeError(f"{path}: not the results of `cige lattice-bert finetune all` ({reason})") from reason

    @classmethod
    def begin(cls, folder: Path, name: str, origin: Sequence[str]) -> GridResult:
        """The results so far in `folder` of the models with these fingerprints, under `name`; no rows if it is new.
        Raises a CigeError if the folder holds results of another model."""
        if not (folder / RESULTS).exists():
            return cls(name, (), tuple(origin))
        result = cls.read(folder)
        if result.origin != tuple(origin):
            raise CigeError(f"{folder} holds results of another pre-trained model; give another output folder")
        return replace(result, name=name)


def tune_task(
    data: TaskData,
    model: str | Path,
    folder: Path,
    *,
    config: TuningConfig,
    rates: Sequence[float],
    n_runs: int,
    keep_models: bool = False,
    **options: Any,
) -> TaskRow:
    """Find the best learning rate with one run each, then train with it for seeds 1 to `n_runs`.

    Args:
        folder: parent folder of all runs.
        rates: learning rates to choose from; with a single one there is no search.
        keep_models: whether to keep the model folder of every run; otherwise only scores and answers are kept.
        options: options of `finetune`: device, show_progress.

    Raises:
        CigeError: no learning rate is given, or one is out of range; and the errors of `finetune`.
    """
    # Made before the first run, so that a rate out of range is refused at once.
    configs = {rate: changed(config, {"optimizer.learning_rate": rate}) for rate in rates}

    def run(rate: float, seed: int) -> TuningResult:
        where = folder / f"{data.task.name}-{rate:g}-{seed}"
        return finetune(data, model, where, config=configs[rate], seed=seed, keep_model=keep_models, **options)

    best, tried = climb(rates, lambda rate: run(rate, 1).deciding)
    runs = [run(best, seed) for seed in range(1, n_runs + 1)]
    return TaskRow(
        task=data.task.name,
        data=runs[0].data,
        learning_rate=best,
        tried=tried,
        dev=_gathered([result.dev for result in runs]),
        test=_gathered([result.test for result in runs]),
    )


def climb(rates: Sequence[float], measure: Callable[[float], float]) -> tuple[float, dict[float, float]]:
    """Measure learning rates, except those that appendix C.2 skips, and return the best and the score of each.

    Three neighbouring learning rates with strictly increasing scores rule out all lower ones, and three with strictly
    decreasing scores all higher ones. Learning rates are measured from the middle outwards, the higher neighbour first.

    The result is the best of all if scores increase strictly up to one learning rate and decrease strictly after it.
    Among equals, the one that was measured first is returned. Raises CigeError if no learning rate is given.
    """
    rates = sorted(set(rates))
    if not rates:
        raise CigeError("no learning rate is given; expected one or more")
    middle = len(rates) // 2
    lowest, highest = 0, len(rates) - 1  # positions of the learning rates that are still candidates
    known: dict[float, float] = {}
    for place in sorted(range(len(rates)), key=lambda k: (abs(k - middle), -k)):
        if not lowest <= place <= highest:
            continue
        known[rates[place]] = measure(rates[place])
        for first in range(max(0, place - 2), min(place, len(rates) - 3) + 1):
            three = [known[rate] for rate in rates[first : first + 3] if rate in known]
            if len(three) == 3 and three[0] < three[1] < three[2]:
                lowest = max(lowest, first)
            elif len(three) == 3 and three[0] > three[1] > three[2]:
                highest = min(highest, first + 2)
    return max(known, key=known.__getitem__), known


def _gathered(scores: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    return {name: [one[name] for one in scores] for name in scores[0]}


def _read_row(values: Mapping[str, Any]) -> TaskRow:
    get_task(values["task"])
    tried = {float(rate): score for rate, score in values["tried"].items()}
    return TaskRow(**{**values, "tried": tried})


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
        facts = f" {row.data.partition(' ')[0].rstrip(':,')} | {row.learning_rate:g} | {row.n_runs}"
        for name in row.dev:
            title = "/".join(filter(None, [TASKS[row.task].title, SHORT_NAMES[name]]))
            test = _mean_sd(row.test[name]) if name in row.test else "- | -"
            lines.append(f"| {title} |{facts} | {_mean_sd(row.dev[name])} | {test} |")
            facts = " | - | -"  # the row of a further score of the task
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
