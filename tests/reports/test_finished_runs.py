"""Runs are known by what their recipe says: like-named folders and recipes of other content stay out of a table."""

from __future__ import annotations

import json
import shutil
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import tiny_run

from cige.engine.run_folder import claim
from cige.errors import CigeError
from cige.reports.comparison import any_finished, rows_of
from cige.reports.finished_runs import OtherRunWarning, finished_runs
from cige.training.recipe import Recipe, load_recipe


def recipe(name: str, **training: object) -> Recipe:
    return replace(tiny_run.tiny_recipe(**training), name=name)


def finish(of: Recipe, seed: int, runs: Path, *, n_right: int = 5, **changed: object) -> Path:
    """A folder as training and scoring leave it, with `n_right` of ten entities found on dev."""
    folder = runs / f"{of.name}-{seed}"
    folder.mkdir(parents=True)
    claim(folder, of, seed=seed, resume=True, load=load_recipe)
    facts = {"name": of.name, "seed": seed, "seconds": 90.0 + seed, "best_epoch": 2, "n_parameters": 7}
    counts = [[1, 1, int(k < n_right)] for k in range(10)]
    dev = {"f1": n_right / 10, "span_f1": n_right / 10, "type_accuracy": 1.0}
    scores = facts | {"architecture": "flat", "dev": dev, "dev_counts": counts} | changed
    (folder / "scores.json").write_text(json.dumps(scores), encoding="utf-8")
    (folder / "result.json").write_text(json.dumps(facts), encoding="utf-8")
    return folder


def test_a_name_that_begins_another_name_has_its_own_runs(tmp_path):
    flat, layers = recipe("flat"), recipe("flat-2layers", n_epochs=4)
    numbered, odd = recipe("flat-2", n_epochs=5), recipe("flat[1]", n_epochs=6)
    for of, n_right in ((flat, 4), (layers, 9), (numbered, 7), (odd, 6)):
        for seed in (1, 2, 12):
            finish(of, seed, tmp_path, n_right=n_right)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = {of.name: finished_runs(of, tmp_path) for of in (flat, layers, numbered, odd)}
        rows = rows_of([flat, layers], tmp_path)
    for name, runs in found.items():
        assert [run.folder.name for run in runs] == [f"{name}-1", f"{name}-2", f"{name}-12"]
        assert {run.scores["name"] for run in runs} == {name}
    assert [(row.name, row.seeds, row.dev) for row in rows] == [
        ("flat-2layers", [1, 2, 12], [0.9] * 3),
        ("flat", [1, 2, 12], [0.4] * 3),
    ]


def test_a_recipe_of_the_same_name_and_other_content_stays_out_with_a_warning(tmp_path):
    ours, theirs = recipe("flat"), recipe("flat", n_epochs=9)
    finish(ours, 1, tmp_path)
    finish(theirs, 2, tmp_path, n_right=9)
    with pytest.warns(OtherRunWarning, match=r"flat-2 is left out: .*training.n_epochs 3 \(was 9\)"):
        (row,) = rows_of([ours], tmp_path)
    assert (row.seeds, row.dev) == ([1], [0.5])
    with pytest.warns(OtherRunWarning, match=r"flat-1 is left out: .*training.n_epochs 9 \(was 3\)"):
        (row,) = rows_of([theirs], tmp_path)
    assert (row.seeds, row.dev) == ([2], [0.9])
    with pytest.warns(OtherRunWarning):
        assert not any_finished([ours], tmp_path, seeds=[2])


def test_a_run_in_the_folder_of_another_seed_stays_out(tmp_path):
    flat = recipe("flat")
    finish(flat, 1, tmp_path).rename(tmp_path / "flat-5")
    with pytest.warns(OtherRunWarning, match=r"seed 5 \(was 1\)"):
        assert finished_runs(flat, tmp_path) == []


def test_scores_of_an_earlier_training_stay_out(tmp_path):
    flat = recipe("flat")
    finish(flat, 1, tmp_path, seconds=99.0)
    with pytest.warns(OtherRunWarning, match="scores.json is from an earlier training"):
        assert finished_runs(flat, tmp_path) == []


def test_starting_over_discards_what_was_measured_of_the_model_before(tmp_path):
    folder = finish(recipe("flat"), 1, tmp_path)
    for name in ("user_words.json", "speed.json"):
        (folder / name).write_text("{}", encoding="utf-8")
    claim(folder, recipe("flat", n_epochs=9), seed=1, resume=False, load=load_recipe)
    assert [path.name for path in folder.iterdir()] == ["recipe.yaml"]


def test_a_recipe_or_scores_that_cannot_be_read_are_told(tmp_path):
    flat = recipe("flat")
    folder = finish(flat, 1, tmp_path)
    (folder / "recipe.yaml").write_text("# seed: 1\nno_such_setting: 1\n", encoding="utf-8")
    with pytest.warns(OtherRunWarning, match=r"its recipe.yaml cannot be read .*no_such_setting"):
        assert finished_runs(flat, tmp_path) == []
    (folder / "scores.json").write_text("{", encoding="utf-8")
    with pytest.raises(CigeError, match=r"scores.json: not JSON .*delete"):
        finished_runs(flat, tmp_path)


def test_what_is_no_run_is_passed_over(tmp_path):
    flat = recipe("flat")
    assert finished_runs(flat, tmp_path / "not there") == []
    (tmp_path / "flat-1").mkdir()
    (tmp_path / "flat-x").write_text("", encoding="utf-8")
    assert finished_runs(flat, tmp_path) == []


def test_runs_scored_on_other_sentences_are_refused(tmp_path):
    good, other = recipe("good"), recipe("other", n_epochs=9)
    finish(good, 1, tmp_path)
    finish(other, 1, tmp_path, dev_counts=[[1, 1, 1]] * 9)
    with pytest.raises(CigeError, match=r"good-1, other-1: not scored on the same dev sentences"):
        rows_of([good, other], tmp_path)


def test_a_copy_under_another_number_is_not_counted_twice(tmp_path):
    flat = recipe("flat")
    finish(flat, 1, tmp_path)
    shutil.copytree(tmp_path / "flat-1", tmp_path / "flat-01")
    assert [run.seed for run in finished_runs(flat, tmp_path)] == [1]
