"""The benchmark that leaves one labelled set out of training; no model is trained here."""

import json
from types import SimpleNamespace

import pytest

from benchmarks.accuracy import left_out
from cige.errors import CigeError
from cige.recipes.shipped import NAMES, TODAY
from cige.training.recipe import load_recipe


@pytest.mark.parametrize("name", left_out.SETS)
def test_the_set_left_out_has_no_weight_and_the_last_epoch_is_scored(name):
    given = left_out.settings(name, 3, "optimizer.learning_rate=0.002")
    recipe = load_recipe(NAMES, given | left_out.OF_DATA)
    assert [source for source, config in recipe.data.sources.items() if not config.weight] == [name]
    assert recipe.training.n_epochs == recipe.training.eval_start_epoch == 3
    assert recipe.vectors.word == "vectors/word.npz" and recipe.optimizer.learning_rate == 0.002


@pytest.fixture
def trained(monkeypatch):
    """The recipes that were trained; no model is."""
    recipes = []

    def train(recipe, folder, **options):
        recipes.append(recipe)
        return SimpleNamespace(model="bundled")

    row = {"program": "labelled", "f1": 50.0, "sentences": 9}
    monkeypatch.setattr(left_out, "train", train)
    monkeypatch.setattr(left_out, "cige", lambda argv: 0)
    monkeypatch.setattr(left_out, "row_of", lambda program, data: row | {"program": program})
    monkeypatch.setattr(left_out, "scored_sentences", lambda name, data_dir: None)
    monkeypatch.setattr(left_out.programs, "alone", lambda *given, name=None: " ".join(filter(None, [name, *given])))
    return recipes


def test_sets_that_the_recipe_does_not_train_on_are_left_out_by_any_of_its_taggers(trained, tmp_path):
    options = {"data_dir": tmp_path, "recipe": TODAY, "folder": tmp_path}
    (result,) = left_out.bench(sets=["msra"], **options)
    assert [row["program"] for row in result["sets"]["msra"]] == ["labelled cige bundled", "jieba"] and not trained
    list(left_out.bench(sets=["cmner"], **options))
    (recipe,) = trained
    assert [source for source, config in recipe.data.sources.items() if not config.weight] == ["cmner"]


def test_the_second_tagger_has_the_vectors_of_the_first(trained, tmp_path):
    both = ["data.sources.agreed.weight=0.9"]  # of the recipe of the second alone
    options = {"raw": tmp_path / "raw.txt", "student_set": [*both, "data.sources.agreed.weight=0.6"]}
    (result,) = left_out.bench(data_dir=tmp_path, sets=["weibo"], folder=tmp_path, **options)
    first, second = trained  # the recipe of the second refuses vectors of its own
    assert first.vectors.word == "vectors/word.npz"
    assert second.start_from == "bundled" and not second.data.sources["weibo"].weight
    assert second.training.n_epochs == 2 and second.data.sources["agreed"].weight == 0.6
    assert len(result["sets"]["weibo"]) == 3


def test_results_go_on_only_with_the_same_settings(trained, tmp_path):
    file = tmp_path / "found.json"
    options = {"data_dir": tmp_path, "sets": ["weibo"], "folder": tmp_path, "json": file}
    (result,) = left_out.bench(**options)
    file.write_text(json.dumps(result), encoding="utf-8")
    list(left_out.bench(**options))
    assert len(trained) == 1
    with pytest.raises(CigeError, match="other settings"):
        list(left_out.bench(**options, seed=2))


def test_the_summary_compares_the_last_model_with_lac():
    rows = [
        {"program": p, "f1": f1, "sentences": 9} for p, f1 in (("labelled", 52.0), ("student", 54.0), ("LAC", 53.0))
    ]
    (row,) = left_out.summary({"weibo": rows})
    assert row["above LAC"] == 1.0 and row["sentences"] == 9
    assert "above LAC" not in left_out.summary({"weibo": rows[:2]})[0]
