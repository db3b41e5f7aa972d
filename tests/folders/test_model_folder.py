"""Where a model is, by what people call it."""

import pytest

from cige.errors import ModelError
from cige.folders.hub import BUNDLED, model_folder


def test_the_bundled_model_has_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert model_folder() == model_folder("bundled") == BUNDLED
    (tmp_path / "bundled").mkdir()
    assert model_folder("bundled").resolve() == tmp_path / "bundled", "a folder of one's own comes first"


def test_a_run_is_the_model_in_it(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "manifest.json").write_text("{}", encoding="utf-8")
    assert model_folder(tmp_path) == tmp_path / "model"


@pytest.mark.parametrize("name", ["", "no/such/folder", "./bundle", "models", 3, True])
def test_what_is_no_model(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match=r"expected a model folder,? (or )?a hub id"):
        model_folder(name)
