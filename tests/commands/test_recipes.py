"""`cige recipes`: the list, every setting of one, and a copy that is a recipe of one's own."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from cige.cli import BAD_INPUT, main
from cige.recipes.shipped import shipped
from cige.training.recipe import load_recipe
from cige.training.search import read_space


def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(["recipes", *argv]) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(["recipes", *argv]) == BAD_INPUT
    return capsys.readouterr().err


def test_the_list_has_every_name(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    lines = printed(capsys, "list").splitlines()
    assert {line.split()[0] for line in lines if line.strip()} >= set(shipped())
    (flat,) = [line for line in lines if line.startswith("weibo/flat ")]
    assert flat.split()[1:3] == ["weibo", "flat"] and "flat-lattice Transformer" in flat


def test_a_narrow_terminal_has_descriptions_below_the_names(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    lines = printed(capsys, "list", "weibo/flat", "search/*").splitlines()
    assert lines[:2] == ["tagging", "weibo/flat"] and "search/table6" in lines
    about = " ".join(line.strip() for line in lines[2 : lines.index("")])
    assert about == shipped()["weibo/flat"].about and len(lines) < 20


def test_the_list_of_a_pattern(capsys):
    found = printed(capsys, "list", "search/*", "weibo/flat_h*", "weibo/flat")
    names = [line.split()[0] for line in found.splitlines() if "/" in line.split(" ")[0]]
    assert names == ["weibo/flat", "weibo/flat_head", "search/table6"]
    assert "did you mean weibo/flat" in refused(capsys, "list", "weibo/flatt")


def test_every_value_with_its_file(capsys):
    found = printed(capsys, "show", "weibo/tener", "--set", "training.n_epochs=3")
    assert found.startswith("# cige train weibo/tener --output runs/weibo/tener\n")
    comments = {line.split(":")[0].strip(): line.partition("# ")[2] for line in found.splitlines()[1:]}
    assert comments["dataset"].startswith("data/weibo.yaml:") and comments["n_layers"].startswith("pairs.yaml:")
    assert comments["n_epochs"] == "override training.n_epochs" and comments["momentum"] == "default"


@pytest.mark.parametrize("name", ["weibo/flat", "weibo/flat_start", "own_data", "ecommerce/multi_digraph_gazetteers"])
def test_what_is_shown_and_copied_is_the_recipe(name, capsys, tmp_path):
    shown = tmp_path / "shown.yaml"
    shown.write_text(printed(capsys, "show", name), encoding="utf-8")
    assert load_recipe(shown) == load_recipe(name)
    path = tmp_path / "mine.yaml"
    printed(capsys, "copy", name, str(path))
    assert load_recipe(path) == replace(load_recipe(name), name="mine")


def test_a_copy_of_ranges_of_a_search(capsys, tmp_path):
    path = tmp_path / "mine.yaml"
    printed(capsys, "copy", "search/table6", str(path))
    assert read_space(path) == read_space("search/table6")


def test_a_copy_begins_with_its_command_and_says_what_it_is(capsys, tmp_path):
    path = tmp_path / "my recipe.yaml"
    said = printed(capsys, "copy", "weibo/flat", str(path))
    lines = path.read_text(encoding="utf-8").splitlines()
    command = f"cige train {shlex.quote(str(path))} --output 'runs/my recipe'"
    assert lines[0] == f"# {command}" and said == f"{path}: {command}\n"
    assert "flat-lattice Transformer" in lines[2] and any("Weibo NER" in line for line in lines)
    assert all(len(line) <= 120 for line in lines[1:])
    assert "# Only for this pair: model.ff_dropout_prob." in lines
    assert "already exists" in refused(capsys, "copy", "weibo/flat", str(path))


def test_mistakes_are_named(capsys, tmp_path):
    assert "did you mean weibo/flat" in refused(capsys, "show", "weibo/flatt")
    assert "did you mean search/table6" in refused(capsys, "copy", "search/table", str(tmp_path / "a.yaml"))
    assert "ends in .yaml" in refused(capsys, "copy", "weibo/flat", str(tmp_path / "a"))
    assert "did you mean 'training.n_epochs'" in refused(capsys, "show", "weibo/flat", "--set", "training.n_epoch=3")
    path = tmp_path / "mine.yaml"
    path.write_text("extends: mine.yaml\n", encoding="utf-8")
    assert "extends itself" in refused(capsys, "show", str(path))
    path.write_text("data: {dataset: weibo}\ntrainings: {n_epochs: 3}\n", encoding="utf-8")
    assert f"{path}:2: unknown key 'trainings'; did you mean 'training'?" in refused(capsys, "show", str(path))


def test_a_file_that_extends_nothing_is_shown(capsys, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("data: {dataset: weibo}\ntraining: {n_epochs: 3}\n", encoding="utf-8")
    lines = printed(capsys, "show", str(path)).splitlines()
    assert lines[0] == f"# cige train {path} --output runs/mine"
    assert any(line.startswith("  n_epochs: 3") and line.endswith(f"# {path}:2") for line in lines)
    assert any(line.startswith("architecture: flat") and line.endswith("# default") for line in lines)


@pytest.mark.parametrize("name", ["weibo/flat", "own_data", "search/table6", "pretrain/tiny", "finetune/tnews"])
def test_a_copy_is_shown_as_what_it_is(name, capsys, tmp_path):
    if name not in shipped():
        pytest.skip("the extension with these recipes was taken out")
    path = tmp_path / "mine.yaml"
    printed(capsys, "copy", name, str(path))
    first, *others = printed(capsys, "show", str(path)).splitlines()
    command = path.read_text(encoding="utf-8").splitlines()[0]
    assert first.split()[:3] == command.split()[:3] and str(path) in first

    def values(lines):
        return [line.rpartition("# ")[0].rstrip() for line in lines if not line.startswith("name: ")]

    assert values(others) == values(printed(capsys, "show", name).splitlines()[1:])


def test_a_file_of_ones_own_is_shown_with_its_lines(capsys, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("extends: weibo/flat\noptimizer: {learning_rate: 1.0e-4}\n", encoding="utf-8")
    found = printed(capsys, "show", str(path)).splitlines()
    assert f"cige train {path}" in found[0]
    assert any(line.startswith("  learning_rate: 0.0001") and line.endswith(f"# {path}:2") for line in found)
    assert any(line.startswith("  dataset: weibo") and "# data/weibo.yaml:" in line for line in found)


def test_names_serve_wherever_a_recipe_does(capsys, tmp_path, monkeypatch):
    """Train, search and compare read the recipe before anything else: a wrong setting tells that they did."""
    monkeypatch.chdir(tmp_path)
    wrong = ["--set", "training.n_epoch=1"]
    for verb, *more in (["train", "-o", "x"], ["search", "-o", "x"], ["compare"]):
        assert main([verb, "weibo/flat", *more, *wrong]) == BAD_INPUT
        assert "did you mean 'training.n_epochs'" in capsys.readouterr().err
    assert main(["compare", "weibo/flat", "weibo/flat_h*", "resume/flat", "--table"]) == BAD_INPUT
    assert "weibo-flat-head (weibo), resume-flat (resume): scored on different" in capsys.readouterr().err
    assert main(["compare", "weibo/x*"]) == BAD_INPUT
    assert "no recipe has such a name" in capsys.readouterr().err
    assert not any(Path().iterdir())
