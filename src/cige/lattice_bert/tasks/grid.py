"""Grid: fine-tune on every task with the best of several learning rates and several seeds (the paper's Table 6).

Runs are stored in OUTPUT/TASK-RATE-SEED. Finished runs are read and interrupted runs are resumed, so a search that was
interrupted continues when it is started again, and one with more tasks, learning rates or runs does only what is new.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cige.errors import CigeError
from cige.folders.atomic import atomic_file
from cige.json_text import to_json
from cige.lattice_bert.tasks.config import TuningConfig
from cige.lattice_bert.tasks.finetune import TuningResult, finetune
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
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            rows = tuple(_read_row(row) for row in values["rows"])
            return cls(values["name"], rows, tuple(values["origin"]))
        except (OSError, ValueError, TypeError, KeyError) as reason:
            raise CigeError(f"{path}: not the results of `cige lattice-bert finetune all` ({reason})") from reason

    @classmethod
    def begin(cls, folder: Path, name: str, origin: Sequence[str]) -> GridResult:
        """The results so far in `folder`, under `name`; CigeError if they are of models with other fingerprints."""
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
        rates: learning rates to choose from, in ascending order; with a single one there is no search.
        keep_models: whether to keep the model folder of every run; otherwise only scores and answers are kept.
        options: options of `finetune`: device, show_progress.
    """

    def run(rate: float, seed: int) -> TuningResult:
        where = folder / f"{data.task.name}-{rate:g}-{seed}"
        settings = changed(config, {"optimizer.learning_rate": rate})
        return finetune(data, model, where, config=settings, seed=seed, keep_model=keep_models, **options)

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
