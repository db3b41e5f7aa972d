"""`cige leaderboard`: cells that run, go on where they stopped, and come out the same when they are run again."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import board_results
import nested_sentences
import pytest
import tiny_run

from cige.cli import main
from cige.data import write_sentences
from cige.json_text import to_json
from cige.leaderboard import run as run_module
from cige.leaderboard.cells import Cell, cheapest_first, estimated_seconds, is_done, share_of
from cige.leaderboard.results import read_results
from cige.leaderboard.run import changed_inputs, differences, other_instructions, run_cell
from cige.models.config import ComponentsConfig
from cige.training.recipe import recipe_to_yaml


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_run.write_data_folder(tmp_path_factory.mktemp("data")))


@pytest.fixture(scope="module")
def recipe_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recipes") / "one.yaml"
    path.write_text(recipe_to_yaml(replace(tiny_run.tiny_recipe(n_epochs=1), name="tiny-one")), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def results(data_dir, recipe_file, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("board")
    options = ["--results", str(folder / "results"), "--runs", str(folder / "runs"), "--data-dir", data_dir]
    assert main(["leaderboard", "run", str(recipe_file), "--seeds", "2", *options]) == 0
    return folder / "results"


def test_each_cell_is_a_file_with_all_that_the_pages_need(results) -> None:
    assert sorted(path.name for path in (results / "tiny").iterdir()) == ["one-1.json", "one-2.json"]
    one, two = read_results(results)
    assert (one.data, one.system, one.seed, two.seed) == ("tiny", "one", 1, 2)
    assert one.test_f1 is None and len(one.counts) == tiny_run.N_DEV and one.settings == two.settings
    gold, found, both = map(sum, zip(*one.counts, strict=True))
    assert one.dev_f1 == pytest.approx(2 * both / (gold + found))
    assert one.repeated == two.repeated and 0 < len(one.repeated) < len(one.counts)
    assert one.user_words["none"] == pytest.approx(one.dev_f1, abs=0.02) and "names of the file" in one.user_words
    assert set(one.sentences_per_second) == {"1", "16"} and min(one.sentences_per_second.values()) > 0
    assert 20 < one.megabytes < 5000 and one.seconds > 0 and one.n_parameters > 0
    assert set(one.data_sha256) == {"train", "dev", "char", "bigram", "word"}
    assert one.data_sha256 == two.data_sha256 and one.weights_sha256 != two.weights_sha256


def test_what_is_there_is_not_run_again(results, recipe_file, data_dir, monkeypatch, capsys) -> None:
    monkeypatch.setattr(run_module, "run_cell", lambda *_, **__: pytest.fail("run again"))
    argv = ["leaderboard", "run", str(recipe_file), "--results", str(results), "--data-dir", data_dir]
    assert main([*argv, "--seeds", "2"]) == 0 and capsys.readouterr().out == ""
    assert main([*argv, "--seeds", "4", "--list"]) == 0
    assert capsys.readouterr().out.split() == ["tiny/one-3", "tiny/one-4"]
    assert main([*argv, "--seeds", "4", "--minutes", "0"]) == 0
    for wrong in ("-1", "nan", "soon"):
        with pytest.raises(SystemExit):
            main([*argv, f"--minutes={wrong}"])
        assert f"given '{wrong}', expected minutes, at least 0" in capsys.readouterr().err


def test_a_file_that_is_no_result_is_told_and_its_cell_is_open(results, recipe_file, data_dir, tmp_path, capsys):
    folder = tmp_path / "results"
    shutil.copytree(results, folder)
    (folder / "tiny" / "one-1.json").write_text('{"format": 0}', encoding="utf-8")
    argv = [str(recipe_file), "--results", str(folder), "--data-dir", data_dir, "--seeds", "2"]
    assert main(["leaderboard", "run", *argv, "--list"]) == 0
    told = capsys.readouterr()
    assert told.out.split() == ["tiny/one-1"] and f"skipped {folder / 'tiny' / 'one-1.json'}: not a result" in told.err
    assert main(["leaderboard", "show", *argv]) == 0
    told = capsys.readouterr()
    assert "1 of 2 cells are open" in told.out and "skipped" in told.err


def test_a_cell_of_other_settings_is_open_again(results, recipe_file, data_dir, tmp_path, capsys) -> None:
    changed = tmp_path / "changed.yaml"
    changed.write_text(recipe_file.read_text(encoding="utf-8").replace("n_epochs: 1", "n_epochs: 2"), encoding="utf-8")
    argv = ["leaderboard", "run", str(changed), "--results", str(results), "--data-dir", data_dir, "--seeds", "1"]
    assert main([*argv, "--list"]) == 0
    assert capsys.readouterr().out.split() == ["tiny/one-1"]


def test_an_input_that_a_recipe_does_not_use_leaves_its_results_valid(data_dir) -> None:
    plain = tiny_run.tiny_recipe(n_epochs=1)
    cell = Cell(plain, seed=1)
    before = asdict(plain)
    del before["model"]["components"]  # as it was before cige had this input
    assert cell.settings == hashlib.sha256(to_json(before, sort_keys=True).encode()).hexdigest()
    table = Path(data_dir) / "components.tsv"
    table.write_text("李\t木 子\n", encoding="utf-8")
    model = replace(plain.model, components=ComponentsConfig(table=table.name))
    reading = Cell(replace(plain, model=model), seed=1)
    assert reading.settings != cell.settings
    assert reading.data_files(data_dir) == cell.data_files(data_dir) | {"components": table}


def test_a_recipe_that_starts_from_a_model_needs_no_vectors_and_its_result_names_that_model(
    results, data_dir, tmp_path
) -> None:
    from cige.training.recipe import load_recipe

    start = next((results.parent / "runs").rglob("manifest.json")).parent
    data = {name: Path(data_dir) / "ner" / "tiny" / f"{name}.bmes" for name in ("train", "dev")}
    written = f"name: own-one\nstart_from: {start}\ndata: {{train: {data['train']}, dev: {data['dev']}}}\n"
    file = tmp_path / "own.yaml"
    file.write_text(written + "training: {n_epochs: 1}\n", encoding="utf-8")
    argv = [str(file), "--seeds", "1", "--results", str(tmp_path / "results"), "--data-dir", str(tmp_path)]
    assert main(["leaderboard", "run", *argv, "--runs", str(tmp_path / "runs")]) == 0
    (one,) = read_results(tmp_path / "results")
    assert one.data_sha256.keys() == {"train", "dev", f"start_from {start}"}
    other = replace(one, data_sha256=one.data_sha256 | {f"start_from {start}": "ab" * 32})
    assert changed_inputs(Cell(load_recipe(str(file)), 1), other, str(tmp_path)) == [f"start_from {start}"]


@pytest.mark.parametrize("name", ["one/two", "one two", "../one"])
def test_a_recipe_whose_name_is_no_cell_is_refused_before_it_is_trained(
    name, recipe_file, data_dir, tmp_path, monkeypatch, capsys
) -> None:
    file = tmp_path / "named.yaml"
    file.write_text(f"extends: {recipe_file}\nname: {name}\n", encoding="utf-8")
    monkeypatch.setattr(run_module, "run_cell", lambda *_, **__: pytest.fail("trained"))
    argv = ["leaderboard", "run", str(file), "--results", str(tmp_path / "results"), "--data-dir", data_dir]
    assert main(argv) == 2
    assert f"{name} cannot be the name of a cell" in capsys.readouterr().err


def test_a_recipe_of_several_corpora_is_refused_before_it_is_trained(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(run_module, "run_cell", lambda *_, **__: pytest.fail("trained"))
    assert main(["leaderboard", "run", "today", "--results", str(tmp_path)]) == 2
    assert "the recipe has several corpora (" in capsys.readouterr().err


def test_recipes_that_share_a_cell_are_refused_unless_they_are_the_same(
    recipe_file, data_dir, tmp_path, capsys
) -> None:
    other = tmp_path / "other.yaml"
    argv = ["leaderboard", "run", str(recipe_file), str(other), "--list", "--seeds", "1", "--data-dir", data_dir]
    argv += ["--results", str(tmp_path / "results")]
    other.write_text(recipe_file.read_text(encoding="utf-8"), encoding="utf-8")
    assert main(argv) == 0 and capsys.readouterr().out.split() == ["tiny/one-1"]
    other.write_text(other.read_text(encoding="utf-8").replace("n_epochs: 1", "n_epochs: 2"), encoding="utf-8")
    assert main(argv) == 2
    assert "tiny/one-1: recipes tiny-one and tiny-one with different settings" in capsys.readouterr().err


def test_a_cell_comes_out_the_same_when_it_is_run_again(results, recipe_file, data_dir, tmp_path) -> None:
    from cige.training.recipe import load_recipe

    first = read_results(results)[0]
    again = run_cell(Cell(load_recipe(str(recipe_file)), 1), tmp_path, data_dir=data_dir)
    assert differences(first, again) == []
    assert differences(first, replace(again, dev_f1=0.0, counts=[])) == ["dev_f1", "counts"]


def test_check_tells_that_other_instruction_sets_make_another_model(
    results, recipe_file, data_dir, monkeypatch, capsys
) -> None:
    from cige.training.recipe import load_recipe

    first, cell = read_results(results)[0], Cell(load_recipe(str(recipe_file)), 1)
    assert first.machine["instructions"] and first.machine["kernels"] and other_instructions(first, first) is None
    monkeypatch.setattr("cige.training.recipe.load_recipe", lambda name: cell.recipe)
    earlier = {name: fact for name, fact in first.machine.items() if name not in ("instructions", "kernels")}
    for machine, told in ((earlier, "does not say"), (earlier | {"instructions": "AVX1", "kernels": "x"}, "used AVX1")):
        other = replace(first, machine=machine)
        for again, expected in ((first, 0), (replace(first, dev_f1=0.0), 1)):
            monkeypatch.setattr("cige.leaderboard.results.read_result_file", lambda path, other=other: other)
            monkeypatch.setattr(run_module, "run_cell", lambda *_, again=again, **__: again)
            argv = ["leaderboard", "check", "tiny/one-1", "--results", str(results), "--data-dir", data_dir]
            assert main(argv) == expected
            out = capsys.readouterr().out
            assert (told in out and run_module.AVX2_ALONE in out) is bool(expected)


def test_a_cell_with_other_inputs_is_not_trained_again(results, recipe_file, data_dir, monkeypatch, capsys) -> None:
    from cige.training.recipe import load_recipe

    (first, _), cell = read_results(results), Cell(load_recipe(str(recipe_file)), 1)
    assert changed_inputs(cell, first, data_dir) == []
    other = replace(first, settings="ab" * 32, data_sha256=first.data_sha256 | {"word": "cd" * 32})
    assert changed_inputs(cell, other, data_dir) == ["settings", "word"]
    monkeypatch.setattr("cige.leaderboard.results.read_result_file", lambda path: other)
    monkeypatch.setattr("cige.training.recipe.load_recipe", lambda name: cell.recipe)
    monkeypatch.setattr(run_module, "run_cell", lambda *_, **__: pytest.fail("trained"))
    assert main(["leaderboard", "check", "tiny/one-1", "--results", str(results), "--data-dir", data_dir]) == 1
    assert "made with other inputs: settings, word" in capsys.readouterr().out


def test_check_wants_a_cell_that_has_a_result(results, capsys) -> None:
    assert main(["leaderboard", "check", "tiny/none-1", "--results", str(results)]) == 2
    assert "give a cell as DATA/SYSTEM-SEED" in capsys.readouterr().err


def test_show_prints_and_writes_pages(results, recipe_file, data_dir, tmp_path, capsys) -> None:
    argv = ["leaderboard", "show", str(recipe_file), "--results", str(results), "--data-dir", data_dir]
    assert main([*argv, "--seeds", "3"]) == 0
    page = capsys.readouterr().out
    assert "# Leaderboard" in page and "| one | 1, 2 |" in page and "1 of 3 cells are open" in page
    files = ["--page", str(tmp_path / "a.md"), "--html", str(tmp_path / "a.html"), "--language", "zh"]
    assert main([*argv, *files, "--seeds", "2"]) == 0
    assert capsys.readouterr().out == ""
    assert "所有单元都已完成" in (tmp_path / "a.md").read_text(encoding="utf-8")
    assert 'lang="zh"' in (tmp_path / "a.html").read_text(encoding="utf-8")
    empty = str(tmp_path / "empty")
    assert main(["leaderboard", "show", str(recipe_file), "--results", empty, "--data-dir", data_dir]) == 2
    assert "no result" in capsys.readouterr().err


def test_merge_from_the_command_line(results, tmp_path, capsys) -> None:
    assert main(["leaderboard", "merge", str(results), "--results", str(tmp_path / "all")]) == 0
    assert "2 new results" in capsys.readouterr().out
    written = json.loads((tmp_path / "all" / "tiny" / "one-1.json").read_text(encoding="utf-8"))
    assert written == json.loads((results / "tiny" / "one-1.json").read_text(encoding="utf-8"))


def test_merge_counts_what_it_skips_and_check_refuses_the_result_of_another_cell(results, tmp_path, capsys) -> None:
    folder = tmp_path / "results"
    shutil.copytree(results, folder)
    shutil.copy(folder / "tiny" / "one-1.json", folder / "tiny" / "one-2.json")
    assert main(["leaderboard", "merge", str(folder), "--results", str(tmp_path / "all")]) == 1
    told = capsys.readouterr()
    assert "1 new result in" in told.out and "skipped 1 " in told.out
    assert "one-2.json: the result of another" in told.err
    assert main(["leaderboard", "check", "tiny/one-2", "--results", str(folder)]) == 2
    assert "one-2.json: the result of another cell, tiny/one-1" in capsys.readouterr().err


@pytest.mark.parametrize("share", ["0/2", "3/2", "x", "1/"])
def test_a_share_is_k_of_n(share, capsys) -> None:
    with pytest.raises(SystemExit):
        main(["leaderboard", "run", "--share", share])
    assert "expected K/N" in capsys.readouterr().err


def test_the_cheapest_cells_come_first(recipe_file, data_dir) -> None:
    short, long = tiny_run.tiny_recipe(n_epochs=1), tiny_run.tiny_recipe(n_epochs=6)
    cells = [
        Cell(replace(recipe, name=f"tiny-{name}"), seed)
        for name, recipe in (("long", long), ("short", short))
        for seed in (1, 2, 3)
    ]
    names = [f"{cell.system}-{cell.seed}" for cell in cheapest_first(cells, [], data_dir)]
    assert names == ["short-1", "short-2", "short-3", "long-1", "long-2", "long-3"]
    slow = board_results.result(data="tiny", system="short", seconds=100.0, work=cells[3].work(data_dir))
    fast = board_results.result(data="tiny", system="other", seconds=1.0, work=cells[3].work(data_dir))
    assert estimated_seconds(cells[3], [slow, fast], data_dir) == pytest.approx(100)
    assert estimated_seconds(cells[0], [slow, fast], data_dir) == pytest.approx(6 * 50.5)  # the median of both
    assert not is_done(cells[3], [slow]) and is_done(cells[3], [replace(slow, settings=cells[3].settings)])
    nowhere = [replace(cells[0].recipe, name="tiny-none", data=replace(cells[0].recipe.data, train="none.bmes"))]
    with_missing = [Cell(nowhere[0], 1), *cells]
    assert cheapest_first(with_missing, [], data_dir)[-1].system == "none"
    shares = [share_of(cells, part, 2) for part in (1, 2)]
    assert [cell.recipe.name for cell in shares[0]] == ["tiny-long"] * 3
    assert {cell.path for share in shares for cell in share} == {cell.path for cell in cells}


def test_a_recipe_of_nested_entities_has_a_result_too(data_dir, tmp_path) -> None:
    folder = tmp_path / "data"
    shutil.copytree(data_dir, folder)
    (folder / "ner/nested").mkdir()
    for name, seed in (("train", 1), ("dev", 2)):
        write_sentences(folder / f"ner/nested/{name}.jsonl", nested_sentences.sentences(40, seed=seed))
    recipe = tiny_run.tiny_recipe(n_epochs=1, recipe__head="pair_grid")
    files = {"train": "ner/nested/train.jsonl", "dev": "ner/nested/dev.jsonl"}
    cell = Cell(replace(recipe, name="nested-grid", data=replace(recipe.data, **files)), 1)
    result = run_cell(cell, tmp_path / "runs", data_dir=str(folder))
    assert result.path == "nested/grid-1.json" and sum(row[0] for row in result.counts) > 0
