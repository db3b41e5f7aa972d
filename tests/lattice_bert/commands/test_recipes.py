"""`cige recipes` with the recipes of pre-training and fine-tuning, and the commands that take them."""

from __future__ import annotations

import argparse
import ast
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from cige.cli import BAD_INPUT, command_of, main
from cige.commands import recipes
from cige.errors import RecipeError
from cige.extensions import recipe_kinds
from cige.lattice_bert.kinds import FINETUNE, PRETRAIN
from cige.lattice_bert.pretraining.recipe import load_pretrain_recipe
from cige.lattice_bert.tasks.config import load_tuning_config
from cige.lattice_bert.tasks.registry import TASKS
from cige.recipes.recipe_file import default_name, read_recipe_file
from cige.recipes.shipped import opening, shipped

KINDS = recipe_kinds()
NAMES = [name for name, one in shipped().items() if one.kind in KINDS]


def parse(command: str) -> argparse.Namespace:
    cige_, verb, *arguments = shlex.split(command)
    assert cige_ == "cige"
    parser = argparse.ArgumentParser(exit_on_error=False)
    command_of(verb).add_arguments(parser)
    return parser.parse_args(arguments)


def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(["recipes", *argv]) == 0
    return capsys.readouterr().out


def test_names_are_kinds_and_files():
    assert set(KINDS) == {PRETRAIN, FINETUNE}
    assert set(NAMES) == {f"{name}/{path.stem}" for name, kind in KINDS.items() for path in kind.folder.iterdir()}
    assert {name for name in NAMES if shipped()[name].kind == FINETUNE} == {task.recipe for task in TASKS.values()}
    assert {kind.example for kind in KINDS.values()} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_files_open_with_what_they_are_and_their_command_which_parses(name):
    one = shipped()[name]
    what, command, *_ = opening(KINDS[one.kind].folder / f"{name.rpartition('/')[2]}.yaml")
    assert what.endswith(".") and len(what) <= 130
    assert command == recipes.command_of(one)
    parse(command)
    parse(recipes.command_of(one, "my recipes/a.yaml"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("recipes/pretraining/tiny.yaml", r"did you mean pretrain/tiny\?"),
        ("cpu_tiny", r"did you mean pretrain/cpu_tiny\?"),
        ("finetune/tnew", r"did you mean finetune/tnews"),
    ],
)
def test_wrong_names_are_answered_with_right_ones(given, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RecipeError, match=message):
        read_recipe_file(given)


def test_a_recipe_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("extends: finetune/tnews\n", encoding="utf-8")
    for recipe in ("finetune/tnews", path):
        with pytest.raises(RecipeError, match="a finetune recipe; expected a tagging recipe, such as weibo/flat"):
            read_recipe_file(recipe, kind="tagging")


def test_names_of_runs():
    assert [default_name(name) for name in ("pretrain/cpu_tiny", "finetune/csl_cut")] == ["cpu-tiny", "csl-cut"]


def test_the_list_of_a_pattern(capsys):
    found = printed(capsys, "list", "finetune/cm*", "weibo/flat")
    names = [line.split()[0] for line in found.splitlines() if "/" in line.split(" ")[0]]
    assert names == ["weibo/flat", "finetune/cmnli", "finetune/cmrc"]


def test_copies(capsys, tmp_path):
    path = tmp_path / "mine.yaml"
    printed(capsys, "copy", "pretrain/tiny_bert_our", str(path))
    assert load_pretrain_recipe(path) == replace(load_pretrain_recipe("pretrain/tiny_bert_our"), name="mine")
    path.unlink()
    printed(capsys, "copy", "finetune/chid", str(path))
    assert load_tuning_config(path) == load_tuning_config("finetune/chid")


def test_a_file_of_ones_own_is_shown_with_its_lines(capsys, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("extends: finetune/tnews\noptimizer: {learning_rate: 1.0e-4}\n", encoding="utf-8")
    found = printed(capsys, "show", str(path)).splitlines()
    assert f"--recipe {path}" in found[0]
    assert any(line.startswith("  learning_rate: 0.0001") and line.endswith(f"# {path}:2") for line in found)
    assert any(line.startswith("  n_epochs: 5") and line.endswith("# finetune/tnews.yaml:4") for line in found)


def test_the_package_data_are_all_of_them():
    package = Path(recipes.__file__).parents[1]
    pyproject = (package.parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    listed = re.search(r"package-data\]\ncige = (\[.*\])\n", pyproject)
    assert listed is not None
    packed = {path for pattern in ast.literal_eval(listed[1]) for path in package.glob(pattern)}
    assert packed >= {path for kind in KINDS.values() for path in kind.folder.iterdir()}


def test_fine_tuning_takes_a_recipe_and_settings(capsys, tmp_path):
    given = ["lattice-bert", "finetune", "tnews", "--model", "m", "--data", str(tmp_path), "-o", str(tmp_path / "x")]
    assert main([*given, "--set", "training.n_epoch=1"]) == BAD_INPUT
    assert "unknown key 'training.n_epoch'; did you mean 'training.n_epochs'" in capsys.readouterr().err
    assert main([*given, "--recipe", "weibo/flat"]) == BAD_INPUT
    assert "expected a finetune recipe, such as finetune/tnews" in capsys.readouterr().err
    assert main([*given, "--set", "training.n_epochs=0"]) == BAD_INPUT
    assert "training.n_epochs is 0, expected at least 1" in capsys.readouterr().err
