"""Grid: every task tuned with the best of several learning rates, several times: the paper's Table 6.

Runs are OUTPUT/TASK-RATE-SEED; one that finished is read, one that was cut off goes on. So a search that was stopped
goes on when it is started again, and one with more tasks, rates or runs does only what is new.
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
from cige.recipes.strict import changed
from cige.tasks.config import TuningConfig
from cige.tasks.finetune import TuningResult, finetune
from cige.tasks.registry import TASKS, get_task
from cige.tasks.task_data import TaskData

RESULTS = "results.json"


@dataclass(frozen=True)
class TaskRow:
    """A task with its best learning rate.

    Attributes:
        task: its name. data: what the data is: full, partial or a stand-in.
        learning_rate: the best; tried: rate -> deciding development score of its first run, 0..1.
        dev, test: score -> its value in each run with the best rate, 0..1; `test` is {} without labelled examples.
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
    """Tasks of one pre-trained model.

    Attributes:
        name: the model's in tables.
        rows: a task each, in the order of the paper's tables.
        origin: fingerprints of the pre-trained model and of that of the first phase.
    """

    name: str
    rows: tuple[TaskRow, ...]
    origin: tuple[str, ...] = ()

    def with_row(self, row: TaskRow) -> GridResult:
        """The same with `row` in place of that of its task, or more."""
        rows = {own.task: own for own in (*self.rows, row)}
        return replace(self, rows=tuple(rows[name] for name in TASKS if name in rows))

    def save(self, folder: Path) -> None:
        with atomic_file(folder / RESULTS) as aside:
            aside.write_text(to_json(asdict(self), indent=1), encoding="utf-8")

    @classmethod
    def read(cls, folder: str | Path) -> GridResult:
        """What `save` wrote; raises CigeError where there is nothing such."""
        path = Path(folder) / RESULTS
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            rows = tuple(_read_row(row) for row in values["rows"])
            return cls(values["name"], rows, tuple(values["origin"]))
        except (OSError, ValueError, TypeError, KeyError) as reason:
            raise CigeError(f"{path}: not the results of `cige finetune all` ({reason})") from reason

    @classmethod
    def begin(cls, folder: Path, name: str, origin: Sequence[str]) -> GridResult:
        """What `folder` holds so far of the models with these fingerprints, now called `name`; no rows where it is new.

        Raises:
            CigeError: it holds results of another model.
        """
        if not (folder / RESULTS).exists():
            return cls(name, (), tuple(origin))
        found = cls.read(folder)
        if found.origin != tuple(origin):
            raise CigeError(f"{folder} holds results of another pre-trained model; give another output folder")
        return replace(found, name=name)


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
    """Find the best learning rate with one run each, then run it with seeds 1 to `n_runs`.

    Args:
        folder: of all runs.
        rates: to choose from, ascending; with a single one nothing is searched.
        keep_models: keep the model folder of every run; if not, scores and answers stay.
        options: of `finetune`: device, show_progress.
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
    """(the best learning rate, the score of each that was measured): every rate, but for those that appendix C.2 skips.

    Lattice-BERT, appendix C.2: "if a model performs monotonic increasing in a down-stream task with the learning rates
    of 2e-5, 3e-5, and 5e-5, we will not try the learning rates lower than 2e-5". So three neighbouring rates whose
    scores rise strictly rule out the rates below them, and three whose scores fall strictly those above them; equal
    scores rule out nothing. Rates are measured from the middle one outwards, the higher neighbour first.

    No measured rate is better than the result, so it is the best of all where scores rise strictly up to one rate and
    fall strictly after it. Of equals the one measured first is returned.

    Raises:
        CigeError: no rate is given.
    """
    rates = sorted(set(rates))
    if not rates:
        raise CigeError("no learning rate is given; expected one or more")
    middle = len(rates) // 2
    lowest, highest = 0, len(rates) - 1  # places of the rates that are still worth a trial
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
