"""search: random choices, no choice twice, and on from where it was cut off."""

from __future__ import annotations

import json
import time
from pathlib import Path

import optuna
import pytest
import stopping
import tiny_run

from cige.errors import RecipeError
from cige.recipes.shipped import TABLE_6
from cige.training import search as module
from cige.training.recipe import Recipe, load_recipe, recipe_to_yaml
from cige.training.search import read_space, search
from cige.training.train import TrainResult, train

LONG = ["training.n_epochs=10"]  # room for a warm-up of ten epochs
SPACE = {"optimizer.learning_rate": [1e-2, 1e-3], "model.n_heads": [2, 4]}


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "r.yaml"
    path.write_text(recipe_to_yaml(tiny_run.tiny_recipe(n_epochs=1)), encoding="utf-8")
    return path


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Recipe, int, Path]]:
    """Replaces training by a made-up F1 that rises with heads and learning rate; lists the calls."""
    calls = []

    def made_up(recipe: Recipe, output_dir: Path, *, seed: int, **_: object) -> TrainResult:
        calls.append((recipe, seed, Path(output_dir)))
        f1 = recipe.model.n_heads / 10 + recipe.optimizer.learning_rate + seed / 100
        numbers = {"best_epoch": 1, "seconds": 0.0, "n_parameters": 0, "padding_share": 0.0}
        folder = Path(output_dir)
        return TrainResult(name="x", seed=seed, dev_f1=f1, **numbers, folder=folder, history=(), machine={})

    monkeypatch.setattr(module, "train", made_up)
    return calls


def test_best_recipe_and_table(recipe: Path, tmp_path: Path, trained: list) -> None:
    result = search(recipe, tmp_path / "s", n_trials=4, space=SPACE, seeds=(1, 3), overrides=["batches.batch_size=5"])
    assert len(trained) == 8 and {seed for _, seed, _ in trained} == {1, 3}
    assert result.best.settings == {"optimizer.learning_rate": 1e-2, "model.n_heads": 4}
    assert result.best.dev_f1 == pytest.approx(0.4 + 0.01 + 0.02)
    best = load_recipe(result.best_recipe)
    assert (best.model.n_heads, best.optimizer.learning_rate, best.batches.batch_size) == (4, 1e-2, 5)
    rows = json.loads((tmp_path / "s/trials.json").read_text(encoding="utf-8"))
    assert len(rows) == 4 and rows == sorted(rows, key=lambda row: -row["dev_f1"])


def test_no_choice_twice_and_never_more_than_there_are(recipe: Path, tmp_path: Path, trained: list) -> None:
    search(recipe, tmp_path / "s", n_trials=50, space=SPACE)
    choices = {(r.model.n_heads, r.optimizer.learning_rate) for r, _, _ in trained}
    assert len(trained) == len(choices) == 4


def test_choices_depend_on_the_seed_alone(recipe: Path, tmp_path: Path, trained: list) -> None:
    def choices(name: str, *n_trials: int, seed: int = 1) -> list:
        trained.clear()
        for n in n_trials:
            search(recipe, tmp_path / name, n_trials=n, space=read_space(TABLE_6), seeds=(seed,), overrides=LONG)
        return [(r.model.n_heads, r.model.head_width, r.optimizer, r.batches, r.schedule) for r, _, _ in trained]

    whole = choices("a", 6)
    assert choices("b", 2, 2, 6) == whole  # stopped and started again, and extended
    assert choices("c", 6, seed=2) != whole


def test_a_killed_search_goes_on_within_the_trial(
    recipe: Path, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = []

    def watched(recipe: Recipe, output_dir: Path, **options: object) -> TrainResult:
        outputs.append(Path(output_dir))
        return train(recipe, output_dir, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "train", watched)

    def interrupt() -> None:
        if len(outputs) == 2:
            raise KeyboardInterrupt

    options = {"n_trials": 2, "space": SPACE, "data_dir": data_dir, "device": "cpu", "show_progress": False}
    options["overrides"] = ["checkpoints.every=4 steps"]
    with stopping.stopped_at(5, interrupt), pytest.raises(KeyboardInterrupt):
        search(recipe, tmp_path / "s", **options)
    assert [p.name for p in outputs[1].glob("checkpoint-*")] == ["checkpoint-4"]
    result = search(recipe, tmp_path / "s", **options)
    assert len(outputs) == 3 and outputs[2] == outputs[1] and len(result.trials) == 2
    assert search(recipe, tmp_path / "s", **options) == result and len(outputs) == 3  # nothing is left to do


def test_another_search_in_the_folder_is_refused(recipe: Path, tmp_path: Path, trained: list) -> None:
    search(recipe, tmp_path / "s", n_trials=1, space=SPACE)
    for changes, message in (
        ({"space": read_space(TABLE_6), "overrides": LONG}, r"n_epochs 10 \(was 1\), space "),
        ({"space": SPACE, "seeds": (2,)}, r"seeds \[2\] \(was \[1\]\)"),
    ):
        with pytest.raises(RecipeError, match=message):
            search(recipe, tmp_path / "s", n_trials=1, **changes)  # type: ignore[arg-type]


def test_a_search_needs_a_trial_and_a_seed(recipe: Path, tmp_path: Path, trained: list) -> None:
    for n_trials, seeds in ((0, (1,)), (1, ())):
        with pytest.raises(ValueError, match="expected one trial and one seed or more"):
            search(recipe, tmp_path / "s", n_trials=n_trials, seeds=seeds)
    assert not trained and not (tmp_path / "s").exists()


def test_bad_spaces_are_told_before_any_training(recipe: Path, tmp_path: Path, trained: list) -> None:
    for space, message in (
        ({"model.n_head": [2]}, "did you mean 'model.n_heads'"),
        ({"model.n_heads": [2, "four"]}, "expected a whole number"),
        ({}, "names no setting"),
        ({"model.n_heads": []}, "has no value for model.n_heads"),
    ):
        with pytest.raises(RecipeError, match=message):
            search(recipe, tmp_path / "s", n_trials=1, space=space)
    assert not trained and not (tmp_path / "s").exists()
    (tmp_path / "space.yaml").write_text("model.n_heads: 4\n", encoding="utf-8")
    with pytest.raises(RecipeError, match="expected a list of values"):
        read_space(tmp_path / "space.yaml")


def test_seeds_of_any_size_choose(recipe: Path, tmp_path: Path, trained: list) -> None:
    """Optuna takes seeds of 32 bits; larger products of seed and trial were an error of NumPy."""
    search(recipe, tmp_path / "s", n_trials=2, space=SPACE, seeds=(20_261_127,))
    assert len(trained) == 2


def test_a_trial_whose_choice_was_cut_off_hides_no_interrupted_one(
    recipe: Path, tmp_path: Path, trained: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    search(recipe, tmp_path / "s", n_trials=1, space=SPACE)
    module._open_study(tmp_path / "s").ask()  # killed before anything was chosen
    interrupted = []

    def stopped(recipe: Recipe, output_dir: Path, **_: object) -> None:
        interrupted.append(output_dir)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(module, "train", stopped)
        search(recipe, tmp_path / "s", n_trials=2, space=SPACE)
    trained.clear()
    search(recipe, tmp_path / "s", n_trials=2, space=SPACE)
    assert [folder for _, _, folder in trained] == interrupted


def test_a_second_search_in_the_folder_is_refused(
    recipe: Path, tmp_path: Path, trained: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two at once would share trials, and the one that comes second to a run would fail."""
    made_up = module.train

    def watched(*given: object, **options: object) -> TrainResult:
        with pytest.raises(RecipeError, match="another search is writing there; wait for it, or stop it"):
            search(recipe, tmp_path / "s", n_trials=2, space=SPACE)
        return made_up(*given, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "train", watched)
    search(recipe, tmp_path / "s", n_trials=2, space=SPACE)
    assert len(trained) == 2


def test_a_search_that_was_killed_within_a_choice_makes_the_same_one(
    recipe: Path, tmp_path: Path, trained: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"n_trials": 3, "space": read_space(TABLE_6), "overrides": LONG}
    search(recipe, tmp_path / "whole", **options)  # type: ignore[arg-type]
    whole = [recipe for recipe, _, _ in trained]
    trained.clear()
    usual, n_asked = optuna.trial.Trial.suggest_categorical, 0

    def killed(self: optuna.trial.Trial, *given: object) -> object:
        nonlocal n_asked
        n_asked += 1
        if n_asked == len(read_space(TABLE_6)) + 2:
            raise KeyboardInterrupt
        return usual(self, *given)  # type: ignore[call-overload]

    monkeypatch.setattr(optuna.trial.Trial, "suggest_categorical", killed)
    with pytest.raises(KeyboardInterrupt):
        search(recipe, tmp_path / "s", **options)  # type: ignore[arg-type]
    assert len(trained) == 1
    search(recipe, tmp_path / "s", **options)  # type: ignore[arg-type]
    assert [recipe for recipe, _, _ in trained] == whole


def test_a_lock_of_optuna_that_a_killed_search_left_is_removed(
    recipe: Path, tmp_path: Path, trained: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    search(recipe, tmp_path / "s", n_trials=1, space=SPACE)
    (tmp_path / "s" / f"{module.STUDY}.lock").symlink_to(module.STUDY)

    def waits(seconds: float) -> None:
        raise AssertionError("waits for the lock, for half a minute")

    monkeypatch.setattr(time, "sleep", waits)
    search(recipe, tmp_path / "s", n_trials=2, space=SPACE)
    assert len(trained) == 2


@pytest.mark.parametrize("content", ["{", "[]", '{"recipe": 1}', '{"space": {}}'])
def test_a_damaged_description_of_a_search_is_told(recipe: Path, tmp_path: Path, trained: list, content: str) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / module.SPACE).write_text(content, encoding="utf-8")
    with pytest.raises(RecipeError, match=r"space\.json: not that of a search .*; choose another output folder"):
        search(recipe, tmp_path / "s", n_trials=1, space=SPACE)
    assert not trained
