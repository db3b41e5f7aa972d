"""Pre-training runs side by side: the table's figures are those of each phase's end, and the curves name every run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cige.cli import main
from cige.engine.run_folder import read_result
from cige.errors import CigeError
from cige.lattice_bert.pretraining.pretrain import PretrainResult
from cige.lattice_bert.pretraining.views import HEADS, draw_curves, held_out_table

PHASES = {"short": {"n_steps": 20, "n_characters": 128}, "long": {"n_steps": 5, "n_characters": 512}}


def record(step: int, share: float) -> dict:
    names = ("mlm_accuracy", "segment_accuracy", "segment_char_accuracy", "sentence_accuracy")
    found = {name: share + k / 100 for k, name in enumerate(names)}
    scores = {"n_instances": 9, "mlm_loss": 10 * share, "sentence_loss": 0.7, **found}
    return {"step": step, "epoch": 0, "learning_rate": 1e-3, "scores": scores}


def make_run(folder: Path, steps: dict[int, float]) -> PretrainResult:
    folder.mkdir()
    (folder / "recipe.yaml").write_text(f"# seed: 1\n{json.dumps(PHASES)}", encoding="utf-8")
    values = {"name": "any", "seed": 1, "n_steps": 25, "n_parameters": 3_600_000, "n_tokens": 12_300_000}
    values |= {"seconds": 90.0, "history": [record(*one) for one in steps.items()], "origins": None}
    (folder / "result.json").write_text(json.dumps(values), encoding="utf-8")
    return read_result(folder, PretrainResult)


def cells(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def test_a_line_a_phase_with_what_was_measured_at_its_end(tmp_path):
    runs = [make_run(tmp_path / "with_words", {10: 0.1, 20: 0.2, 25: 0.3}), make_run(tmp_path / "blind", {})]
    heads, _, *rows = cells(held_out_table(runs))
    assert heads == list(HEADS)
    assert rows[0] == ["with_words", "3.6M", "12.3", "2", "128 characters", "20.0%", "2.00", "21.0%", "22.0%", "23.0%"]
    assert rows[1] == ["", "", "", "", "512 characters", "30.0%", "3.00", "31.0%", "32.0%", "33.0%"]
    assert rows[2][4:] == ["128 characters", "-", "-", "-", "-", "-"] and len(rows) == 4


def test_runs_called_alike_are_told_apart_by_their_paths(tmp_path):
    for parent in "ab":
        (tmp_path / parent).mkdir()
    runs = [make_run(tmp_path / parent / "run", {20: 0.2, 25: 0.3}) for parent in "ab"]
    assert [row[0] for row in cells(held_out_table(runs))[2::2]] == [str(tmp_path / parent / "run") for parent in "ab"]


@pytest.mark.parametrize("recipe", ["short: {n_steps: 20}", "data: {dataset: weibo}", "short: 3"])
def test_a_recipe_of_something_else_is_told(recipe, tmp_path):
    run = make_run(tmp_path / "run", {20: 0.2})
    (run.folder / "recipe.yaml").write_text(recipe, encoding="utf-8")
    with pytest.raises(CigeError, match=r"recipe.yaml: not the recipe of a pre-training run"):
        held_out_table([run])


def test_what_was_not_asked_is_a_dash(tmp_path):
    run = make_run(tmp_path / "run", {20: 0.2})
    measured = run.evaluations[0]
    asked = {name: x for name, x in measured.scores.items() if name not in ("sentence_accuracy", "mlm_loss")}
    found = replace(run, history=(replace(measured, scores=asked),))
    row = cells(held_out_table([found]))[2]
    assert row[-2:] == ["22.0%", "-"] and row[-4] == "-"
    draw_curves([found], tmp_path / "curves.svg")


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_curves_are_drawn_of_every_run(ending, tmp_path):
    runs = [make_run(tmp_path / "with_words", {10: 0.1, 20: 0.2}), make_run(tmp_path / "blind", {})]
    draw_curves(runs, tmp_path / f"curves.{ending}")
    drawn = (tmp_path / f"curves.{ending}").read_bytes()
    assert drawn[:4] in (b"<?xm", b"\x89PNG", b"%PDF")
    if ending == "svg":
        text = drawn.decode("utf-8")
        assert "with_words" in text and "blind" in text and "accuracy on the order of two texts, %" in text


def test_an_ending_that_is_no_format_is_told(tmp_path):
    with pytest.raises(CigeError, match=r"ends in '.txt'; expected .svg, .png or .pdf"):
        draw_curves([make_run(tmp_path / "run", {20: 0.2})], tmp_path / "curves.txt")
    assert not (tmp_path / "curves.txt").exists()


def test_the_command(tmp_path, capsys):
    make_run(tmp_path / "run", {20: 0.2, 25: 0.3})
    assert main(["lattice-bert", "pretrain", "table", str(tmp_path / "run"), "--curves", str(tmp_path / "c.svg")]) == 0
    assert "| run | 3.6M | 12.3 |" in capsys.readouterr().out and (tmp_path / "c.svg").is_file()
    assert main(["lattice-bert", "pretrain", "table", str(tmp_path / "none")]) == 2
    assert "not the result of a finished run" in capsys.readouterr().err
    of_tagging = {"name": "x", "dev_f1": 0.5, "best_epoch": 1, "seconds": 1.0, "history": []}
    (tmp_path / "tagging").mkdir()
    (tmp_path / "tagging/result.json").write_text(json.dumps(of_tagging))
    assert main(["lattice-bert", "pretrain", "table", str(tmp_path / "tagging")]) == 2
    assert "another kind of run, or of a later version (it has best_epoch, dev_f1)" in capsys.readouterr().err
    (tmp_path / "tagging/result.json").write_text('{"name": "x", "history": []}')
    assert main(["lattice-bert", "pretrain", "table", str(tmp_path / "tagging")]) == 2
    assert "another kind of run, or damaged (it lacks seed, " in capsys.readouterr().err
