"""The output folder of a run: whose it is."""

from __future__ import annotations

import pytest

from cige.engine.run_folder import refuse_foreign
from cige.errors import RecipeError


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
