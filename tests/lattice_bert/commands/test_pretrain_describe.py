"""`cige lattice-bert pretrain describe`: options that make no sense."""

import pytest

from cige.cli import main


@pytest.mark.parametrize("ratio", ["nan", "inf", "0.5"])
def test_tokens_per_character_are_a_number_from_1(ratio, capsys):
    assert main(["lattice-bert", "pretrain", "describe", "--size", "tiny", "--tokens-per-char", ratio]) == 2
    assert "expected 1 or more" in capsys.readouterr().err


@pytest.mark.parametrize("given", [("--recipe", "pretrain/tiny"), ("--set", "instances.short_prob=0")])
def test_settings_of_instances_need_data(given, capsys):
    assert main(["lattice-bert", "pretrain", "describe", *given]) == 2
    assert "name the data with --data" in capsys.readouterr().err
