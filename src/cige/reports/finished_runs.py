"""Find the finished runs of a recipe in a folder of runs, by the recipe's settings and not only by folder names."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, cast

from cige.engine.run_folder import RECIPE, RESULT, SCORES, changes_since
from cige.entities.scores import ReportJson
from cige.errors import CigeError
from cige.folders.atomic import write_atomically
from cige.json_text import JsonObject, to_json
from cige.training.recipe import Recipe, load_recipe


class OtherRunWarning(UserWarning):
    """A folder has the name of a run of the recipe but holds a different run."""


class RunScores(TypedDict, total=False):
    """The content of scores.json: a run, its scores of each split, the counts of each of its sentences, and the sha256
    of the sentences of each split (absent in files of earlier versions)."""

    name: str
    architecture: str
    seed: int
    seconds: float
    best_epoch: int
    n_parameters: int
    machine: JsonObject
    dev: ReportJson
    dev_counts: list[list[int]]
    test: ReportJson
    test_counts: list[list[int]]
    sentences: dict[str, str]


@dataclass(frozen=True)
class FinishedRun:
    """A run that was trained and scored.

    Attributes:
        folder: folder of the run; seed: seed of the run.
        scores: the scores that `scored_run.run_one` wrote to scores.json in the folder.
    """

    folder: Path
    seed: int
    scores: RunScores


def run_folder(recipe: Recipe, seed: int, runs: Path) -> Path:
    """The folder in which `cige compare` stores the run of a recipe with a seed."""
    return runs / f"{recipe.name}-{seed}"


def finished_runs(recipe: Recipe, runs: Path, *, seeds: Collection[int] | None = None) -> list[FinishedRun]:
    """The finished runs of a recipe, by seed.

    A run of the recipe is in the folder `runs/NAME-SEED`, and its recipe.yaml has the same settings and the same seed.
    If a folder of that name holds a run with other settings, or scores that are older than its model, it is left out
    with an `OtherRunWarning` that says what differs.

    Args:
        seeds: the seeds to include; None includes all.

    Raises:
        CigeError: a file of scores cannot be read.
    """
    found = []
    for folder in runs.iterdir() if runs.is_dir() else ():
        named = re.fullmatch(rf"{re.escape(recipe.name)}-(0|[1-9][0-9]*)", folder.name)
        if named is None or not (folder / SCORES).is_file():
            continue
        seed = int(named[1])
        if seeds is not None and seed not in seeds:
            continue
        scores = read_scores(folder)
        reason = _reason_for_mismatch(folder, recipe, seed, scores)
        if reason:
            advice = "give one of the two recipes another name, or --runs another folder"
            message = f"{folder} is left out: {reason}; {advice}"
            warnings.warn(message, OtherRunWarning, stacklevel=1)  # always from this line, so that it is shown once
        else:
            found.append(FinishedRun(folder, seed, scores))
    return sorted(found, key=lambda run: run.seed)


def are_of_training(scores: Mapping[str, object], result: Mapping[str, object]) -> bool:
    """Whether scores belong to the training that a run's result.json describes, and not to an earlier one."""
    return all(scores.get(name) == result.get(name) for name in ("seed", "seconds", "best_epoch", "n_parameters"))


def read_scores(folder: Path) -> RunScores:
    """The scores of a run; {} if there are none; raises the errors of `read_json`."""
    return cast(RunScores, read_json(folder / SCORES))


def read_json(path: Path) -> JsonObject:
    """Read a JSON object; {} if there is no file. Raises CigeError if the file holds something else."""
    if not path.is_file():
        return {}
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as reason:
        raise CigeError(f"{path}: not JSON ({reason}); delete the file, and it will be written again") from reason
    if not isinstance(values, dict):
        raise CigeError(
            f"{path}: a JSON {type(values).__name__}, expected an object; delete it, and it will be written again"
        )
    return values


def _reason_for_mismatch(folder: Path, recipe: Recipe, seed: int, scores: RunScores) -> str:
    """Why a folder does not hold a run of the recipe with the seed; "" if it does."""
    try:
        changed = changes_since(folder, recipe, seed=seed, load=load_recipe)
    except CigeError as reason:
        return f"its {RECIPE} cannot be read ({reason})"
    if changed:
        return f"it holds a run with other settings (the recipe has {', '.join(changed)})"
    result = read_json(folder / RESULT)
    if result and not are_of_training(scores, result):
        return f"its {SCORES} is from an earlier training; run the command without --table to score it again"
    return ""


def write_json(path: Path, values: Any) -> None:
    """Write JSON values, atomically."""
    write_atomically(path, to_json(values))
