"""Random search over settings of a recipe (Table 6 of the paper) with Optuna; interrupted searches can be resumed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cige.engine.run_folder import differences, refuse_foreign
from cige.errors import CigeError, RecipeError
from cige.folders.atomic import write_atomically
from cige.folders.in_use import in_use
from cige.json_text import to_json
from cige.recipes.recipe_file import override_pairs, read_recipe_file
from cige.recipes.settings import Settings
from cige.recipes.shipped import SEARCH, TABLE_6
from cige.training.recipe import Recipe, load_recipe, recipe_from_dict, recipe_to_yaml
from cige.training.train import train

if TYPE_CHECKING:
    import optuna

STUDY, SPACE, BEST_RECIPE, TRIALS = "study.log", "space.json", "best.yaml", "trials.json"


@dataclass(frozen=True)
class Trial:
    """One choice of settings: `settings` by key path, mean `dev_f1` over seeds (0..1), and `folder` of its runs."""

    settings: Settings
    dev_f1: float
    folder: Path


@dataclass(frozen=True)
class SearchResult:
    """The `best` trial, all `trials`, best first, and `best_recipe`, the file with the complete recipe of the best."""

    best: Trial
    trials: tuple[Trial, ...]
    best_recipe: Path


def search(
    recipe: str | Path,
    output_dir: str | Path,
    *,
    n_trials: int,
    space: Mapping[str, Sequence[Any]] | None = None,
    seeds: Sequence[int] = (1,),
    overrides: Sequence[str] = (),
    data_dir: str | Path | None = None,
    device: str = "auto",
    show_progress: bool = True,
) -> SearchResult:
    """Train `n_trials` random choices of settings and write the best recipe to `output_dir/best.yaml`.

    The choice of trial k depends only on the first seed and k; choices that were tried before are skipped. An
    interrupted search resumes in the middle of its current training run with the same command; a larger `n_trials` adds
    trials.

    Args:
        recipe: the recipe to vary, the name of a built-in recipe or a YAML file.
        space: key path -> values to choose from; the default is Table 6 of the FLAT paper (search/table6).
        seeds: each choice is trained with all seeds and evaluated by mean development F1.
        overrides: "key=value" settings of all trials.

    Raises:
        RecipeError: a setting or value is not valid for the recipe, or the output folder belongs to another search, or
            another process searches there.
    """
    folder = Path(output_dir)
    space = dict(read_space(TABLE_6) if space is None else space)
    if not space:
        raise RecipeError("the search space names no setting")
    if empty := [key for key, values in space.items() if not values]:
        raise RecipeError(f"the search space has no value for {empty[0]}; expected one or more")
    if n_trials < 1 or not seeds:
        raise ValueError(f"given n_trials={n_trials} and seeds={list(seeds)}; expected one trial and one seed or more")
    common = dict(override_pairs(overrides))
    for key, values in space.items():  # every value must give a valid recipe, before any trial is started
        for value in values:
            load_recipe(recipe, common | {key: value})
    refuse_foreign(folder, files_of_run=[SPACE])
    with in_use(folder, by="another search", error=RecipeError):
        listed = {key: list(values) for key, values in space.items()}
        _claim(folder, load_recipe(recipe, overrides), listed, list(seeds))
        study = _open_study(folder)
        n_trials = min(n_trials, math.prod(len(values) for values in space.values()))
        while len(_finished(study, folder)) < n_trials:
            trial, choice = _next_choice(study, space, seed=seeds[0])
            varied = load_recipe(recipe, common | choice)
            scores = [
                train(
                    varied,
                    _trial_folder(folder, choice) / f"seed-{seed}",
                    seed=seed,
                    data_dir=data_dir,
                    device=device,
                    show_progress=show_progress,
                ).dev_f1
                for seed in seeds
            ]
            study.tell(trial, sum(scores) / len(scores))
            _write_results(_finished(study, folder), folder, recipe, common)
        trials = _finished(study, folder)
        _write_results(trials, folder, recipe, common)
        return SearchResult(best=trials[0], trials=tuple(trials), best_recipe=folder / BEST_RECIPE)


def read_space(path: str | Path) -> dict[str, list[Any]]:
    """Ranges from a YAML file of lines such as `batches.batch_size: [8, 10]`, or from search/table6."""
    values, _ = read_recipe_file(path, kind=SEARCH)
    if not all(isinstance(v, list) and v for v in values.values()):
        raise RecipeError(f"{path}: expected a list of values for each setting, such as `batches.batch_size: [8, 10]`")
    return values


def _claim(folder: Path, recipe: Recipe, space: Settings, seeds: list[int]) -> None:
    path = folder / SPACE
    if path.is_file():
        now = {"space": space, "seeds": seeds}
        try:
            old = json.loads(path.read_text(encoding="utf-8"))
            changed = differences(recipe_from_dict(old["recipe"]), recipe)
            changed += [f"{name} {new} (was {old[name]})" for name, new in now.items() if old[name] != new]
        except CigeError:
            raise
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as reason:
            raise RecipeError(f"{path}: not that of a search ({reason}); choose another output folder") from reason
        if changed:
            raise RecipeError(f"{folder} holds another search: now {', '.join(changed)}; choose another output folder")
        return
    write_atomically(path, to_json({"recipe": asdict(recipe), "space": space, "seeds": seeds}, indent=1))


def _open_study(folder: Path) -> optuna.Study:
    try:
        import optuna
        from optuna.storages.journal import JournalFileBackend, JournalStorage
    except ImportError as reason:
        raise CigeError(f"the search needs optuna ({reason}); pip install 'cige[train]'") from reason
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    # Optuna's own lock of the file, left by a process that was killed; it would wait for it for half a minute.
    folder.joinpath(f"{STUDY}.lock").unlink(missing_ok=True)
    storage = JournalStorage(JournalFileBackend(str(folder / STUDY)))
    return optuna.create_study(storage=storage, study_name="cige", direction="maximize", load_if_exists=True)


def _next_choice(study: optuna.Study, space: Mapping[str, Sequence[Any]], *, seed: int) -> tuple[int, Settings]:
    """The number and the choice of an interrupted trial, or else a random choice that has not been tried yet."""
    import optuna
    from optuna.trial import TrialState

    running = study.get_trials(deepcopy=False, states=[TrialState.RUNNING])
    running = [trial for trial in running if trial.params.keys() == space.keys()]  # earlier versions left others
    if running:
        return running[0].number, _values(running[0].params, space)
    tried = [t.params for t in study.get_trials(deepcopy=False) if t.state == TrialState.COMPLETE]
    while True:
        number = len(study.get_trials(deepcopy=False))
        # Drawn in memory and then written as a whole: a search that is killed among the settings of a choice makes the
        # same choice when it goes on.
        sampler = optuna.samplers.RandomSampler(seed=(seed * 1_000_003 + number) % 2**32)
        drawn = optuna.create_study(sampler=sampler).ask()
        places = {key: drawn.suggest_categorical(key, list(range(len(values)))) for key, values in space.items()}
        state = TrialState.PRUNED if places in tried else TrialState.RUNNING
        study.add_trial(optuna.trial.create_trial(state=state, params=drawn.params, distributions=drawn.distributions))
        if state == TrialState.RUNNING:
            return number, _values(places, space)


def _values(places: Mapping[str, int], space: Mapping[str, Sequence[Any]]) -> Settings:
    return {key: space[key][place] for key, place in places.items()}


def _finished(study: optuna.Study, folder: Path) -> list[Trial]:
    """Finished trials, best first."""
    import optuna

    space = json.loads((folder / SPACE).read_text(encoding="utf-8"))["space"]
    completed = study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.COMPLETE])
    scored = [(_values(trial.params, space), trial.value or 0.0) for trial in completed]
    finished = [Trial(choice, dev_f1, _trial_folder(folder, choice)) for choice, dev_f1 in scored]
    return sorted(finished, key=lambda trial: -trial.dev_f1)


def _trial_folder(folder: Path, choice: Mapping[str, Any]) -> Path:
    settings = (f"{key.rpartition('.')[2]}-{choice[key]}" for key in sorted(choice))
    return folder / "_".join(settings).replace(" ", "")


def _write_results(trials: list[Trial], folder: Path, recipe: str | Path, common: Settings) -> None:
    best = load_recipe(recipe, common | trials[0].settings)
    text = f"# best of {len(trials)} trials: dev F1 {100 * trials[0].dev_f1:.2f}\n{recipe_to_yaml(best)}"
    rows = [{"dev_f1": t.dev_f1, "folder": t.folder.name, **t.settings} for t in trials]
    write_atomically(folder / BEST_RECIPE, text)
    write_atomically(folder / TRIALS, to_json(rows, indent=1))
