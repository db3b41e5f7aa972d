"""The output folder of a run: its files, the check that it belongs to the run, and the result."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Collection
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from cige.engine.checkpoint import PREFIX, discard_checkpoints, reporting_write_errors
from cige.engine.devices import is_restart
from cige.engine.history import Record
from cige.engine.progress import CURVES
from cige.errors import CigeError, RecipeError
from cige.folders.atomic import write_atomically
from cige.folders.hub import RUN_MODEL
from cige.json_text import to_json
from cige.recipes.recipe_file import dump_yaml, flat


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """The folder and the records of a run; subclasses add what else result.json says."""

    folder: Path
    history: tuple[Record, ...]

    @property
    def model(self) -> Path:
        """Its model folder."""
        return self.folder / MODEL


R = TypeVar("R", bound=RunResult)

RECIPE, RESULT, BEST, MODEL = "recipe.yaml", "result.json", "best.safetensors", RUN_MODEL
SHORT_MODEL = f"{MODEL}-short"  # of runs with two phases, after the first
SCORES, USER_WORDS, SPEED = "scores.json", "user_words.json", "speed.json"  # results of a comparison
_SEED = "# seed: "
_OF_FOLDER = ("folder", "history")  # fields of a result that result.json does not have, or has by itself


def claim(folder: Path, recipe: Any, *, seed: int, resume: bool, load: Callable[[Path], Any]) -> None:
    """Claim a folder for this run: write all settings to recipe.yaml, or check that the folder contains this run.

    `refuse_foreign` comes first; this function deletes and replaces what a run writes.
    Without `resume`, everything that a previous run left there is deleted. A run that failed before it saved anything
    (because of a wrong setting or a missing file) does not count, so its folder can be used with corrected settings. A
    run that torchrun restarted continues even without `resume`, because the files in the folder are its own.

    Raises:
        RecipeError: the folder holds a run of another recipe or seed.
    """
    path = folder / RECIPE
    if (resume or is_restart()) and path.is_file() and _holds_training(folder):
        try:
            changed = changes_since(folder, recipe, seed=seed, load=load)
        except RecipeError as reason:
            raise RecipeError(
                f"{folder} holds a run of another kind or version ({reason}); choose another output folder"
            ) from None
        if changed:
            raise RecipeError(
                f"{folder} holds a run with other settings: now {', '.join(changed)}; choose another output folder, "
                "delete this one, or start over with resume=False (--no-resume)"
            )
        return
    discard_checkpoints(folder)
    for name in (RESULT, BEST, SCORES, USER_WORDS, SPEED):
        (folder / name).unlink(missing_ok=True)
    for made in (MODEL, SHORT_MODEL, CURVES):
        shutil.rmtree(folder / made, ignore_errors=True)
    write_atomically(path, f"{_SEED}{seed}\n{dump_yaml(recipe)}")


def refuse_foreign(folder: Path, *, files_of_run: Collection[str] = ()) -> None:
    """Raise a RecipeError if a run must not write to a folder, because it contains other files or is a file itself.

    `files_of_run` show, besides recipe.yaml, that cige wrote the folder. Hidden files and logs are ignored, since users
    may redirect the messages of a run to a file in its folder.
    """
    path = next((p for p in (folder, *folder.parents) if p.is_file()), None)
    if path is not None:
        where = "" if path == folder else f"{folder}: "
        raise RecipeError(f"{where}{path} is a file; expected a folder for the files of the run, give a new name")
    if (folder / RECIPE).is_file() and not _first_line(folder / RECIPE).startswith(_SEED):
        raise RecipeError(
            f"{folder / RECIPE}: no run wrote this file, and a new run would replace it; give a new folder"
        )
    if not folder.is_dir() or any((folder / name).exists() for name in (RECIPE, *files_of_run)):
        return
    foreign = sorted(p.name for p in folder.iterdir() if p.name[0] != "." and p.suffix != ".log")
    if foreign:
        shown = ", ".join(foreign[:3]) + (f" and {len(foreign) - 3:,} more" if len(foreign) > 3 else "")
        raise RecipeError(f"{folder}: already exists, with files that no run wrote ({shown}); give a new folder")


def changes_since(folder: Path, recipe: Any, *, seed: int, load: Callable[[Path], Any]) -> list[str]:
    """How a recipe and seed differ from those of the run in a folder; RecipeError if `load` refuses its recipe."""
    path = folder / RECIPE
    changed = differences(load(path), recipe)
    first_line = _first_line(path)
    if first_line != f"{_SEED}{seed}":
        changed.insert(0, f"seed {seed} (was {first_line.removeprefix(_SEED)})")
    return changed


def result_values(result: RunResult) -> dict[str, object]:
    """The fields of a result without its folder and its records."""
    return {name: value for name, value in asdict(result).items() if name not in _OF_FOLDER}


def write_result(result: RunResult) -> None:
    """Write the result of a finished run with its records, and delete what only an unfinished run needs."""
    folder, records = result.folder, [asdict(record) for record in result.history]
    with reporting_write_errors(folder):
        write_atomically(folder / RESULT, to_json(result_values(result) | {"history": records}, indent=1))
    discard_checkpoints(folder)
    (folder / BEST).unlink(missing_ok=True)


def read_result(folder: str | Path, kind: type[R]) -> R:
    """The result of a finished run, which is of the class `kind`.

    Raises:
        CigeError: there is no result, or it is of another kind of run.
    """
    path, known = Path(folder) / RESULT, fields(kind)
    required = [one.name for one in known if one.default is MISSING and one.default_factory is MISSING]
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        history = tuple(Record(**record) for record in values.pop("history"))
    except (OSError, ValueError, TypeError, LookupError, AttributeError) as reason:
        raise CigeError(f"{path}: not the result of a finished run ({reason})") from reason
    if others := sorted(values.keys() - {one.name for one in known}):
        raise CigeError(
            f"{path}: the result of another kind of run, or of a later version (it has {', '.join(others)})"
        )
    if missing := [name for name in required if name not in (*values, *_OF_FOLDER)]:
        raise CigeError(f"{path}: the result of another kind of run, or damaged (it lacks {', '.join(missing)})")
    return kind(**values, history=history, folder=Path(folder))


def _first_line(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace").partition("\n")[0]


def _holds_training(folder: Path) -> bool:
    return any(next(folder.glob(name), None) for name in (RESULT, BEST, MODEL, SHORT_MODEL, f"{PREFIX}*"))


def differences(old: Any, new: Any) -> list[str]:
    """The settings that differ, each as `training.n_epochs 3 (was 2)`."""
    before, after = flat(asdict(old)), flat(asdict(new))
    keys = dict.fromkeys([*after, *before])  # a section that one of the two leaves out has keys in the other alone
    return [f"{k} {after.get(k)!r} (was {before.get(k)!r})" for k in keys if before.get(k) != after.get(k)]
