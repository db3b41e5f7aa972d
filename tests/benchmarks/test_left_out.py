"""The benchmark that leaves one labelled set out of training; no model is trained here."""

from __future__ import annotations

import argparse
from pathlib import Path

import bench_left_out
import pytest

from cige.recipes.shipped import NAMES, STUDENT, TODAY
from cige.training.recipe import load_recipe


@pytest.mark.parametrize("name", bench_left_out.SETS)
def test_the_set_left_out_has_no_weight_and_the_last_epoch_is_scored(name):
    args = argparse.Namespace(set=["optimizer.learning_rate=0.002"])
    recipe = load_recipe(NAMES, bench_left_out.settings(name, args, 3, bench_left_out.OF_DATA))
    assert [source for source, config in recipe.data.sources.items() if not config.weight] == [name]
    assert recipe.training.n_epochs == recipe.training.eval_start_epoch == 3
    assert recipe.vectors.word == "vectors/word.npz" and recipe.optimizer.learning_rate == 0.002


def test_sets_that_the_recipe_does_not_train_on_are_left_out_by_any_of_its_taggers(tmp_path):
    args = argparse.Namespace(set=[], recipe=TODAY, model="bundled", folder=tmp_path)
    assert bench_left_out.left_out("msra", args, {}) == {"labelled": "bundled"}
    recipe = load_recipe(TODAY, bench_left_out.settings("cmner", args, 3, {}))
    assert [source for source, config in recipe.data.sources.items() if not config.weight] == ["cmner"]


def test_the_second_tagger_has_the_vectors_of_the_first():
    both = ["data.sources.agreed.weight=0.9"]  # of both taggers; those of the second count
    args = argparse.Namespace(set=both, student_set=["data.sources.agreed.weight=0.6"], student_epochs=2)
    settings = bench_left_out.student_settings("weibo", args, Path("bundled"), Path("agreed.jsonl"))
    recipe = load_recipe(STUDENT, settings)  # which refuses vectors of its own
    assert recipe.start_from == "bundled" and not recipe.data.sources["weibo"].weight
    assert recipe.training.n_epochs == 2 and recipe.data.sources["agreed"].weight == 0.6


def test_the_summary_compares_the_last_model_with_lac():
    rows = [
        {"program": p, "f1": f1, "sentences": 9} for p, f1 in (("labelled", 52.0), ("student", 54.0), ("LAC", 53.0))
    ]
    (row,) = bench_left_out.summary({"weibo": rows})
    assert row["above LAC"] == 1.0 and row["sentences"] == 9
    assert "above LAC" not in bench_left_out.summary({"weibo": rows[:2]})[0]
