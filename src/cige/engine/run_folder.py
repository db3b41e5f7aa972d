"""The output folder of a run: what is where, whose it is, and its result."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from cige.engine.checkpoint import PREFIX, discard_checkpoints, says_what_survives
from cige.engine.curves import FOLDER as CURVES
from cige.engine.history import Record, RunState
from cige.errors import CigeError, RecipeError
from cige.folders.atomic import atomic_file
from cige.folders.hub import RUN_MODEL
from cige.json_text import to_json
from cige.recipes.recipe_file import dump_yaml

T = TypeVar("T")

RECIPE, RESULT, BEST, MODEL = "recipe.yaml", "result.json", "best.safetensors", RUN_MODEL
SCORES, USER_WORDS, SPEED = "scores.json", "user_words.json", "speed.json"  # what a comparison measures of the model
_SEED = "# seed: "


def claim(folder: Path, recipe: Any, *, seed: int, resume: bool, load: Callable[[Path], Any]) -> None:
    """Make the folder this run's own: write every setting to recipe.yaml, or find that the run in it is this one.

    Without `resume` whatever a run left there goes. A run that failed before it kept anything (a setting that does not
    fit, a file that is not there) is no run: its folder is free for the settings put right.

    Args:
        recipe: a dataclass; `load` reads one like it from a YAML file.

    Raises:
        RecipeError: it holds a run of another recipe or seed.
    """
    path = folder / RECIPE
    if resume and path.is_file() and _holds_training(folder):
        changed = changes_since(folder, recipe, seed=seed, load=load)
        if changed:
            raise RecipeError(
                f"{folder} holds a run with other settings: now {', '.join(changed)}; choose another output folder, or "
                "start over with resume=False (--no-resume)"
            )
        return
    discard_checkpoints(folder)
    for name in (RESULT, BEST, SCORES, USER_WORDS, SPEED):
        (folder / name).unlink(missing_ok=True)
    for made in (*folder.glob(f"{MODEL}*"), folder / CURVES):
        shutil.rmtree(made, ignore_errors=True)
    with atomic_file(path) as aside:
        aside.write_text(f"{_SEED}{seed}\n{dump_yaml(recipe)}", encoding="utf-8")


def changes_since(folder: Path, recipe: Any, *, seed: int, load: Callable[[Path], Any]) -> list[str]:
    """How a recipe and seed differ from those of the run in a folder, each as `training.n_epochs 3 (was 2)`.

    Raises:
        RecipeError: the folder has no recipe.yaml, or one that `load` refuses.
    """
    path = folder / RECIPE
    changed = differences(load(path), recipe)
    first_line = path.read_text(encoding="utf-8").partition("\n")[0]
    if first_line != f"{_SEED}{seed}":
        changed.insert(0, f"seed {seed} (was {first_line.removeprefix(_SEED)})")
    return changed


def write_result(folder: Path, values: Mapping[str, Any], state: RunState) -> None:
    """Write the result of a finished run, its records included; what only a run under way needs goes."""
    records = [asdict(record) for record in state.records]
    with says_what_survives(folder), atomic_file(folder / RESULT) as aside:
        aside.write_text(to_json({**values, "history": records}, indent=1), encoding="utf-8")
    discard_checkpoints(folder)
    (folder / BEST).unlink(missing_ok=True)


def read_result(folder: str | Path, result: Callable[..., T]) -> T:
    """The result of a finished run.

    Args:
        result: a dataclass with the fields that `write_result` was given, `history` (a tuple of Records), `folder` and
            `model` (paths).

    Raises:
        CigeError: there is none, or of another kind of run.
    """
    folder = Path(folder)
    try:
        values = json.loads((folder / RESULT).read_text(encoding="utf-8"))
        history = tuple(Record(**record) for record in values.pop("history"))
        return result(**values, history=history, folder=folder, model=folder / MODEL)
    except (OSError, ValueError, TypeError, KeyError) as reason:
        raise CigeError(f"{folder / RESULT}: not the result of a finished run ({reason})") from reason


def _holds_training(folder: Path) -> bool:
    return any(next(folder.glob(name), None) for name in (RESULT, BEST, f"{MODEL}*", f"{PREFIX}*"))


def differences(old: Any, new: Any) -> list[str]:
    """The settings that differ, each as `training.n_epochs 3 (was 2)`."""
    before, after = _flat(asdict(old), ""), _flat(asdict(new), "")
    return [f"{key} {value!r} (was {before.get(key)!r})" for key, value in after.items() if before.get(key) != value]


def _flat(values: dict[str, Any], prefix: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return found
