"""`cige compact`: what it refuses; which rows are kept is tested in tests/models."""

from __future__ import annotations

from pathlib import Path

import pytest

from cige.cli import main


def test_a_model_is_not_replaced_by_its_smaller_copy(model, tmp_path, capsys):
    """The copy has fewer words and tables in 8 bits, from which the model cannot be restored."""
    before = (Path(model) / "model.safetensors").read_bytes()
    link = tmp_path / "link"
    link.symlink_to(model)
    for output in (model, str(link)):
        assert main(["compact", model, output]) == 2
        assert f"{output}: the folder of the model itself" in capsys.readouterr().err
    assert (Path(model) / "model.safetensors").read_bytes() == before


def test_numbers_of_words_and_bigrams_are_not_negative(model, tmp_path, capsys):
    for option in ("--n-words", "--n-bigrams"):
        with pytest.raises(SystemExit):
            main(["compact", model, str(tmp_path / "small"), option, "-3"])
        assert f"{option}: given '-3', expected a whole number of at least 0" in capsys.readouterr().err
    assert not (tmp_path / "small").exists()
