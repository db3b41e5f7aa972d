"""The output folder of a run: whose it is."""

from __future__ import annotations

import pytest

from cige.engine.run_folder import differences, refuse_foreign
from cige.errors import RecipeError
from cige.training.recipe import load_recipe


@pytest.mark.parametrize("names", [[], [".DS_Store"], ["train.log"], ["recipe.yaml", "anything"]])
def test_new_folders_and_those_of_runs_are_taken(tmp_path, names):
    for name in names:
        (tmp_path / name).touch()
    refuse_foreign(tmp_path)
    refuse_foreign(tmp_path / "new" / "deeper")


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
