"""The recipes that ship, as files: their names, their opening comments, and that the package has them all."""

from __future__ import annotations

import argparse
import ast
import re
import shlex
from pathlib import Path

import pytest

import cige
from cige import cli
from cige.commands.recipes import command_of
from cige.data.registry import DATASETS
from cige.errors import RecipeError
from cige.extensions import recipe_kinds
from cige.recipes.recipe_file import default_name, read_recipe_file
from cige.recipes.shipped import (
    FOLDER,
    LEARN_TYPE,
    NAMES,
    OWN_DATA,
    SEARCH,
    STUDENT,
    TAGGING,
    TODAY,
    TODAY_STUDENT,
    example_of,
    layers_of,
    matching,
    opening,
    shipped,
)
from cige.recipes.yaml_file import read_layer

PACKAGE = Path(cige.__file__).parent
FILES = sorted(FOLDER.rglob("*.yaml"))
NAMES_OF_CORE = [name for name, one in shipped().items() if one.kind not in recipe_kinds()]


def parse(command: str) -> argparse.Namespace:
    cige_, verb, *arguments = shlex.split(command)
    assert cige_ == "cige"
    parser = argparse.ArgumentParser(exit_on_error=False)
    cli.command_of(verb).add_arguments(parser)
    return parser.parse_args(arguments)


def test_names_are_data_by_system_and_files() -> None:
    stems = {kind: {path.stem for path in (FOLDER / kind).glob("*.yaml")} for kind in ("data", "systems")}
    pairs = {f"{data}/{system}" for data in stems["data"] for system in stems["systems"]}
    others = {f"search/{path.stem}" for path in (FOLDER / "search").iterdir()}
    found = set(NAMES_OF_CORE)
    assert found - pairs == others | {LEARN_TYPE, NAMES, STUDENT, TODAY, TODAY_STUDENT, OWN_DATA}
    left_out = {"msra/flat_start"} | {f"{data}/multi_digraph_gazetteers" for data in stems["data"] - {"ecommerce"}}
    assert pairs - found == left_out
    assert stems["data"] == set(DATASETS)
    assert {example_of(kind) for kind in (TAGGING, SEARCH)} <= found


def test_every_exception_is_of_a_pair() -> None:
    assert set(read_layer(FOLDER / "pairs.yaml", called="pairs").values) <= set(shipped())


def test_every_exception_changes_something() -> None:
    for pair in read_layer(FOLDER / "pairs.yaml", called="pairs").values:
        *below, exception = layers_of(pair)
        whole = below[0]
        for layer in below[1:]:
            whole = layer.over(whole)
        assert exception.over(whole).values != whole.values, pair


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_files_open_with_what_they_are_and_a_command_that_parses(path: Path) -> None:
    what, command, *_ = opening(path)
    assert what.endswith(".") and len(what) <= 130
    parse(command)


@pytest.mark.parametrize("name", NAMES_OF_CORE)
def test_the_command_of_a_recipe_parses(name: str) -> None:
    one = shipped()[name]
    parse(command_of(one))
    parse(command_of(one, "my recipes/a.yaml"))
    if not one.data and name not in ("search/table6", "learn_type"):  # other commands use these
        assert opening(FOLDER / f"{name}.yaml")[1] == command_of(one)


def test_the_package_data_are_all_of_them() -> None:
    pyproject = (PACKAGE.parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    listed = re.search(r"package-data\]\ncige = (\[.*\])\n", pyproject)
    assert listed is not None
    packed = {path for pattern in ast.literal_eval(listed[1]) for path in PACKAGE.glob(pattern)}
    assert FILES and packed >= set(FILES)


def test_patterns() -> None:
    assert matching("weibo/flat_h*") == ["weibo/flat_head"]
    assert set(matching("weibo/*")) == {name for name, one in shipped().items() if one.data == "weibo"}
    with pytest.raises(RecipeError, match=r"weibo/x\*: no recipe has such a name; `cige recipes list` prints them all"):
        matching("weibo/x*")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("weibo/flatt", r"weibo/flatt: no such recipe; .*did you mean weibo/flat "),
        ("recipes/weibo/flat.yaml", r"did you mean weibo/flat\?"),
        ("table6", r"did you mean search/table6\?"),
        ("msra/flat_start", r"flat_start is for weibo, resume, ecommerce, cluener only"),
        ("mine.yaml", r"mine.yaml: no such recipe; expected a YAML file or a name that `cige recipes list` prints$"),
    ],
)
def test_wrong_names_are_answered_with_right_ones(
    given: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RecipeError, match=message):
        read_recipe_file(given)


def test_layers_and_where_values_come_from() -> None:
    values, origins = read_recipe_file("weibo/flat_head", ["training.n_epochs=2"])
    places = {key: origins[key].partition(":")[0] for key in ("batches.pool_batches", "mentions.sentence_prob")}
    assert places == {"batches.pool_batches": "tagging.yaml", "mentions.sentence_prob": "data/weibo.yaml"}
    assert (
        origins["model.width"] if "model.width" in origins else origins["model.n_heads"].startswith("systems/flat.yaml")
    )
    assert origins["model.ff_dropout_prob"].startswith("pairs.yaml:") and values["model"]["ff_dropout_prob"] == 0.3
    assert origins["model.distances"].startswith("systems/flat_head.yaml:")
    assert origins["training.n_epochs"] == "override training.n_epochs" and values["training"]["n_epochs"] == 2
    again, _ = read_recipe_file("weibo/flat_head")
    assert again["training"]["n_epochs"] == 21  # an override does not reach the recipe that ships


def test_a_file_may_extend_a_recipe_that_ships(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("extends: weibo/flat\nmodel: {n_heads: 4}\n", encoding="utf-8")
    values, origins = read_recipe_file(path)
    assert values["model"]["n_heads"] == 4 and values["model"]["head_width"] == 20
    assert origins["model.n_heads"] == f"{path}:2" and default_name(path) == "mine"
    (tmp_path / "further.yaml").write_text("extends: mine.yaml\ntraining: {n_epochs: 3}\n", encoding="utf-8")
    values, _ = read_recipe_file(tmp_path / "further.yaml")
    assert values["model"]["n_heads"] == 4 and values["training"]["n_epochs"] == 3


def test_another_network_takes_no_settings_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("extends: weibo/flat\narchitecture: plt\n", encoding="utf-8")
    values, origins = read_recipe_file(path)
    assert "model" not in values and not any(key.startswith("model") for key in origins)


def test_a_recipe_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("extends: search/table6\n", encoding="utf-8")
    for recipe in ("search/table6", path):
        with pytest.raises(RecipeError, match="a search recipe; expected a tagging recipe, such as weibo/flat"):
            read_recipe_file(recipe, kind="tagging")


def test_names_of_runs() -> None:
    assert [default_name(n) for n in ("weibo/soft_lexicon", "search/table6", "own_data", "runs/a.b.yaml")] == [
        *("weibo-soft-lexicon", "table6", "own-data", "a.b"),
    ]


def test_a_recipe_that_is_missing_names_the_file_that_extends_it(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("extends: nowhere.yaml\n", encoding="utf-8")
    assert cli.main(["recipes", "show", str(path)]) == 2
    assert f"no such recipe (extended by {path})" in capsys.readouterr().err
