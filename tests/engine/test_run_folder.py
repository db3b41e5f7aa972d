"""The output folder of a run: whose it is."""

from __future__ import annotations

import pytest

from cige.engine.run_folder import claim, differences, refuse_foreign
from cige.errors import RecipeError
from cige.training.recipe import load_recipe


@pytest.mark.parametrize("names", [[], [".DS_Store"], ["train.log"]])
def test_new_folders_and_those_of_runs_are_taken(tmp_path, names):
    for name in names:
        (tmp_path / name).touch()
    refuse_foreign(tmp_path)
    refuse_foreign(tmp_path / "new" / "deeper")


def test_a_folder_with_the_recipe_of_a_run_is_taken_and_one_with_a_recipe_of_the_user_is_not(tmp_path):
    (tmp_path / "anything").touch()
    (tmp_path / "recipe.yaml").write_text("# seed: 1\nname: x\n", encoding="utf-8")
    refuse_foreign(tmp_path)
    (tmp_path / "recipe.yaml").write_text("extends: weibo/flat  # 我的\n", encoding="gbk")
    with pytest.raises(RecipeError, match=r"recipe\.yaml: no run wrote this file"):
        refuse_foreign(tmp_path)


def test_starting_over_deletes_what_runs_write_and_no_other_models(tmp_path):
    recipe = load_recipe("weibo/flat")
    claim(tmp_path, recipe, seed=1, resume=True, load=load_recipe)
    for name in ("model", "model-short", "model-of-mine", "models"):
        (tmp_path / name).mkdir()
    claim(tmp_path, recipe, seed=2, resume=False, load=load_recipe)
    assert {path.name for path in tmp_path.iterdir()} == {"recipe.yaml", "model-of-mine", "models"}


def test_a_run_of_another_kind_is_told_as_such(tmp_path):
    (tmp_path / "recipe.yaml").write_text("# seed: 1\nsize: tiny\n", encoding="utf-8")
    (tmp_path / "model").mkdir()
    with pytest.raises(RecipeError, match=r"holds a run of another kind or version .*'size'.*; choose another output"):
        claim(tmp_path, load_recipe("weibo/flat"), seed=1, resume=True, load=load_recipe)


@pytest.mark.parametrize("names", [["thesis.docx"], ["models.txt", "train.log"], ["result.json"]])
def test_those_of_others_are_refused(tmp_path, names):
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(RecipeError, match=names[0]):
        refuse_foreign(tmp_path)
    refuse_foreign(tmp_path, files_of_run=names)


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "d.bmes").touch()
    for folder in (tmp_path / "d.bmes", tmp_path / "d.bmes" / "run"):
        with pytest.raises(RecipeError, match=r"d\.bmes is a file; expected a folder"):
            refuse_foreign(folder)


def test_a_section_that_one_recipe_leaves_out_is_a_difference():
    plain = load_recipe("weibo/flat")
    other = load_recipe("weibo/flat", ["model.components.table=c.tsv"])
    assert differences(plain, plain) == differences(other, other) == []
    assert "model.components.table 'c.tsv' (was None)" in differences(plain, other)
    assert "model.components.table None (was 'c.tsv')" in differences(other, plain)
