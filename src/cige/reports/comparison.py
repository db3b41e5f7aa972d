"""Train and score several systems in the same way, over seeds, and compare their scores and speed."""

from __future__ import annotations

import hashlib
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from cige.api import NER, load
from cige.engine.run_folder import SPEED, USER_WORDS, read_result
from cige.errors import CigeError
from cige.folders.processes import child_environment, process_pool
from cige.reports.finished_runs import FinishedRun, RunScores, finished_runs, read_json, write_json
from cige.reports.scored_run import Split, run_one, splits_of
from cige.reports.significance import Difference, all_differences
from cige.runtime.native import n_cores
from cige.tagging.evaluation import TrialJson, user_word_trials
from cige.tagging.finder import EntityFinder
from cige.training.recipe import Recipe
from cige.training.sources import check_one_corpus, read_data
from cige.training.train import TrainResult

Trials: TypeAlias = dict[str, list[list[TrialJson]]]  # system -> seeds -> trials
SPEED_BATCHES = (1, 16)
_SPEED_SENTENCES, _SPEED_ROUNDS = 200, 3


@dataclass(frozen=True)
class Row:
    """One system of a comparison; scores are strict F1, 0..1, one per seed.

    Attributes:
        name: name of the recipe; architecture: name of the model.
        seeds: the seeds whose runs finished.
        dev, test: F1 by seed; `test` is empty if the data set has no test file.
        span_f1, type_accuracy: on the deciding split (test if there is one, else dev), by seed.
        n_parameters: number of trained weights, including the rows of embedding tables that training reads.
        seconds: time of training and scoring, by seed.
        behind: mean F1 of the best row minus that of this row, on the deciding split; None for the best row.
        behind_low, behind_high: interval of that difference; the intervals of all pairs of the table hold
            simultaneously with 95% confidence.
        p_value: the probability that systems that do not differ show a difference this large, corrected for all pairs
            of the table (`cige.reports.significance`); None for the best row.
        p_covers_seeds: whether the interval and the p value account for training seeds (True) or, because every system
            has one seed, only for sentences (False); None for the best row.
        speed: maps batch size to sentences per second, measured for all systems in turn; empty if not requested.
    """

    name: str
    architecture: str
    seeds: list[int]
    dev: list[float]
    test: list[float]
    span_f1: list[float]
    type_accuracy: list[float]
    n_parameters: int
    seconds: list[float]
    behind: float | None
    behind_low: float | None
    behind_high: float | None
    p_value: float | None
    p_covers_seeds: bool | None
    speed: dict[int, float]

    @property
    def deciding(self) -> list[float]:
        """The F1 scores that rank systems: test if there is a test set, else dev."""
        return self.test or self.dev

    def to_dict(self) -> dict[str, object]:
        return asdict(self)


def check_comparable(recipes: Sequence[Recipe]) -> None:
    """Raise a CigeError if two recipes have the same name, or are scored on different sentences, or one has several
    corpora."""
    for recipe in recipes:
        check_one_corpus(recipe.data)
    names = [recipe.name for recipe in recipes]
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise CigeError(f"several recipes are named {', '.join(twice)}; runs are stored by name, so rename all but one")
    if len({_scored_on(recipe) for recipe in recipes}) > 1:
        each = ", ".join(f"{recipe.name} ({recipe.data.dataset or recipe.data.dev})" for recipe in recipes)
        raise CigeError(f"{each}: scored on different sentences; compare the recipes of one data set at a time")


def _scored_on(recipe: Recipe) -> tuple[Any, ...]:
    data = recipe.data
    return data.dataset, data.dev, data.test, data.n_held_out, data.train if data.n_held_out else None


def run_all(
    recipes: Sequence[Recipe],
    seeds: Sequence[int],
    runs: Path,
    *,
    data_dir: str | None = None,
    n_jobs: int = 1,
    device: str = "auto",
) -> Iterator[RunScores]:
    """Train and score each recipe with each seed; yields the scores of each run as it finishes.

    A run is stored in `runs/NAME-SEED`. A finished run is read, and an interrupted run is resumed.

    Args:
        n_jobs: number of parallel processes; each gets an equal share of the cores.

    Raises:
        CigeError: as raised by `check_comparable` or `train`, which ends the other runs too; or a process died.
    """
    check_comparable(recipes)
    jobs = [(recipe, seed, runs, data_dir, device) for seed in seeds for recipe in recipes]
    if n_jobs == 1:
        yield from (run_one(*job) for job in jobs)
        return
    threads = {"OMP_NUM_THREADS": str(max(1, n_cores() // n_jobs))}
    try:
        with child_environment(threads), process_pool(n_jobs) as pool:
            for finished in as_completed([pool.submit(run_one, *job) for job in jobs]):
                yield finished.result()
    except BrokenProcessPool as reason:
        raise CigeError(
            f"a process died while it trained in {runs} ({reason}); most often memory ran out. Run the same command "
            "again, with fewer processes (--jobs): finished runs are read, and interrupted ones continue"
        ) from reason


def rows_of(recipes: Sequence[Recipe], runs: Path, *, seeds: Sequence[int] | None = None) -> list[Row]:
    """One row per system with finished runs, the best first; differences and p values are relative to the best.

    A run counts if its folder holds the same recipe (`finished_runs`); other runs of its name are left out with a
    warning.

    Args:
        seeds: the seeds to include; None includes all.

    Raises:
        CigeError: the runs were not scored on the same sentences.
    """
    systems = [(recipe, finished) for recipe in recipes if (finished := finished_runs(recipe, runs, seeds=seeds))]
    if not systems:
        return []
    split: Split = "test" if all("test" in run.scores for _, finished in systems for run in finished) else "dev"
    systems.sort(key=lambda system: statistics.mean(run.scores[split]["f1"] for run in system[1]), reverse=True)
    against_best = _against_first([finished for _, finished in systems], split)
    rows = []
    for (recipe, finished), behind in zip(systems, against_best, strict=True):
        scores = [run.scores for run in finished]
        rows.append(
            Row(
                name=recipe.name,
                architecture=scores[0]["architecture"],
                seeds=[run.seed for run in finished],
                dev=[x["dev"]["f1"] for x in scores],
                test=[x["test"]["f1"] for x in scores] if split == "test" else [],
                span_f1=[x[split]["span_f1"] for x in scores],
                type_accuracy=[x[split]["type_accuracy"] for x in scores],
                n_parameters=scores[0]["n_parameters"],
                seconds=[x["seconds"] for x in scores],
                behind=None if behind is None else behind.value,
                behind_low=None if behind is None else behind.low,
                behind_high=None if behind is None else behind.high,
                p_value=None if behind is None else behind.p_value,
                p_covers_seeds=None if behind is None else behind.covers_seeds,
                speed=_measured_speed(recipe, runs),
            )
        )
    return rows


def _measured_speed(recipe: Recipe, runs: Path) -> dict[int, float]:
    """The speeds that `measure_speeds` saved for the recipe, with any seed; {} if there are none."""
    speeds = next(filter(None, (read_json(run.folder / SPEED) for run in finished_runs(recipe, runs))), {})
    return {int(size): value for size, value in speeds.items()}


def _against_first(systems: Sequence[Sequence[FinishedRun]], split: Split) -> list[Difference | None]:
    """How far each system is behind the first system; None for the first."""
    name: Literal["dev_counts", "test_counts"] = "dev_counts" if split == "dev" else "test_counts"
    try:
        for of_system in systems:
            if len(sizes := {len(run.scores[name]) for run in of_system}) > 1:
                raise ValueError(f"seeds of {' and '.join(map(str, sorted(sizes)))} sentences")
            digests = {run.scores.get("sentences", {}).get(split) for run in of_system} - {None}
            if len(digests) > 1:
                raise ValueError("they changed between the seeds")
        differences = all_differences(
            [np.array([run.scores[name] for run in of_system], np.int64) for of_system in systems]
        )
    except ValueError as reason:
        names = ", ".join(run.folder.name for of_system in systems for run in of_system)
        raise CigeError(
            f"{names}: not scored on the same {split} sentences ({reason}); give all seeds in one call without "
            "--table, on one data folder, and they are scored again"
        ) from reason
    return [differences.get((0, place)) for place in range(len(systems))]


def any_finished(recipes: Sequence[Recipe], runs: Path, *, seeds: Sequence[int] | None = None) -> bool:
    """Whether `rows_of` would return a row."""
    return any(finished_runs(recipe, runs, seeds=seeds) for recipe in recipes)


def measure_speeds(
    recipes: Sequence[Recipe], runs: Path, *, data_dir: str | None = None
) -> dict[str, dict[int, float]]:
    """Sentences per second of each finished system, by batch size; saved as speed.json in the run that was measured.

    Prediction is measured end to end (matching, lattices, tagging) on the CPU, on up to 200 sentences of the recipe's
    deciding split. Systems are measured alternately, and each value is the best of three rounds, so that other load on
    the machine affects all systems equally.
    """
    taggers: dict[str, tuple[EntityFinder, list[str]]] = {}
    folders: dict[str, Path] = {}
    for recipe in recipes:
        if finished := finished_runs(recipe, runs):
            sentences = list(splits_of(recipe, data_dir).values())[-1][:_SPEED_SENTENCES]
            folders[recipe.name] = finished[0].folder
            ner = load(read_result(finished[0].folder, TrainResult).model, precision="float32")
            taggers[recipe.name] = (ner, [s.text for s in sentences])
    speeds: dict[str, dict[int, float]] = {name: dict.fromkeys(SPEED_BATCHES, 0.0) for name in taggers}
    for _ in range(_SPEED_ROUNDS):
        for name, (ner, texts) in taggers.items():
            for batch_size in SPEED_BATCHES:
                begin = time.perf_counter()
                list(ner.pipe(texts, batch_size=batch_size))
                speed = len(texts) / (time.perf_counter() - begin)
                speeds[name][batch_size] = max(speeds[name][batch_size], speed)
    for name, folder in folders.items():
        write_json(folder / SPEED, speeds[name])
    return speeds


def user_words_of_runs(
    recipes: Sequence[Recipe],
    runs: Path,
    *,
    seeds: Sequence[int] | None = None,
    data_dir: str | None = None,
    gazetteers: Mapping[str, Sequence[str]] | None = None,
) -> Trials:
    """For each system and finished seed, the gain from user words on dev (`tagging.evaluation.user_word_trials`).

    The result is saved in the folder of the run and not measured again with the same gazetteers.

    Args:
        seeds: the seeds to include; None includes all.
        gazetteers: maps names to lists of words.
    """
    given = gazetteers or {}
    lists = {name: hashlib.sha256("\n".join(words).encode()).hexdigest() for name, words in given.items()}
    trials: Trials = {}
    for recipe in recipes:
        for run in finished_runs(recipe, runs, seeds=seeds):
            path = run.folder / USER_WORDS
            measured = read_json(path)
            if measured.get("gazetteers") != lists:
                learned, dev = read_data(recipe.data, data_dir, nested=recipe.head == "pair_grid")
                ner = NER.from_pretrained(read_result(run.folder, TrainResult).model)
                of_run = user_word_trials(ner, dev, train=learned, gazetteers=gazetteers, with_labels=False)
                measured = {"gazetteers": lists, "trials": [trial.to_dict() for trial in of_run]}
                write_json(path, measured)
            trials.setdefault(recipe.name, []).append(measured["trials"])
    return trials
