"""`cige compare`: runs that resume, rows that rank, tables and the figure."""

from __future__ import annotations

import json
import shutil
import statistics
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import tiny
import tiny_run

from cige.cli import main
from cige.data import write_sentences
from cige.errors import CigeError, RecipeError
from cige.reports import comparison, scored_run
from cige.reports.comparison import Row, check_comparable, measure_speeds, rows_of, run_all, user_words_of_runs
from cige.reports.comparison_views import (
    comparison_note,
    comparison_table,
    draw_f1_against_speed,
    draw_user_words,
    mean_sd,
    shown_p,
    user_word_table,
)
from cige.tagging.evaluation import user_word_trials
from cige.training.recipe import Recipe, load_recipe, recipe_to_yaml


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_run.write_data_folder(tmp_path_factory.mktemp("data")))


@pytest.fixture(scope="module")
def recipes() -> list[Recipe]:
    good = replace(tiny_run.tiny_recipe(n_epochs=2), name="good")
    bad = replace(tiny_run.tiny_recipe(n_epochs=1, optimizer__learning_rate=1e-7), name="bad")
    return [bad, good]


@pytest.fixture(scope="module")
def runs(recipes, data_dir, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    finished = list(run_all(recipes, [1, 2], folder, data_dir=data_dir))
    assert [(x["name"], x["seed"]) for x in finished] == [("bad", 1), ("good", 1), ("bad", 2), ("good", 2)]
    return folder


def test_rows_are_ranked_and_told_apart(runs, recipes):
    good, bad = rows_of(recipes, runs)
    assert (good.name, bad.name) == ("good", "bad") and good.seeds == [1, 2]
    assert good.p_value is good.behind is good.p_covers_seeds is None
    assert bad.p_value < 0.05 and bad.p_covers_seeds
    assert bad.behind == pytest.approx(statistics.mean(good.dev) - statistics.mean(bad.dev))
    assert 0 < bad.behind_low < bad.behind < bad.behind_high <= 1
    assert statistics.mean(good.dev) > statistics.mean(bad.dev) and good.test == []
    assert good.deciding == good.dev and good.n_parameters == bad.n_parameters > 0
    kept = json.loads((runs / "good-1" / "scores.json").read_text())
    counts = [sum(column) for column in zip(*kept["dev_counts"], strict=True)]
    assert 2 * counts[2] / (counts[0] + counts[1]) == pytest.approx(good.dev[0])
    assert [row.seeds for row in rows_of(recipes[1:], runs, seeds=[2])] == [[2]]
    assert rows_of([replace(recipes[0], name="never ran")], runs) == []
    json.dumps([row.to_dict() for row in (good, bad)], allow_nan=False)


def test_with_one_seed_p_values_are_marked_as_those_of_sentences(runs, recipes):
    rows = rows_of(recipes, runs, seeds=[1])
    assert [row.p_covers_seeds for row in rows] == [None, False]
    assert "| p (sentences alone) |" in comparison_table(rows)
    assert "nothing is known about the effect of another seed" in comparison_note(rows)
    both = rows_of(recipes, runs)
    assert "(sentences alone)" not in comparison_table(both) and "seeds and sentences" in comparison_note(both)
    assert comparison_note(both[:1]) == ""


def test_a_recipe_of_the_same_name_and_other_content_is_never_mixed_in(runs, recipes, data_dir, tmp_path, capsys):
    path = tmp_path / "changed.yaml"
    changed = replace(recipes[1], training=replace(recipes[1].training, n_epochs=1))
    path.write_text(recipe_to_yaml(changed), encoding="utf-8")
    argv = ["compare", str(path), "--runs", str(runs), "--seeds", "2", "--data-dir", data_dir, "--no-speed"]
    assert main([*argv, "--table"]) == 2
    told = capsys.readouterr().err
    assert told.count("good-1 is left out") == 1 and "training.n_epochs 1 (was 2)" in told
    assert "no finished run of good" in told
    assert main(argv) == 2 and "holds a run with other settings" in capsys.readouterr().err


def test_scores_are_made_again_where_the_model_was_trained_again(recipes, data_dir, tmp_path):
    (first,) = run_all(recipes[:1], [1], tmp_path, data_dir=data_dir)
    scores = tmp_path / "bad-1" / "scores.json"
    scores.write_text(json.dumps(first | {"seconds": -1.0, "dev": {"f1": 2.0}}), encoding="utf-8")
    (again,) = run_all(recipes[:1], [1], tmp_path, data_dir=data_dir)
    assert again == first == json.loads(scores.read_text(encoding="utf-8"))


def test_scores_are_made_again_where_the_test_sentences_have_changed(data_dir, tmp_path):
    recipe = tiny_run.tiny_recipe(n_epochs=1)
    recipe = replace(recipe, data=replace(recipe.data, test=str(tmp_path / "test.bmes")))
    write_sentences(tmp_path / "test.bmes", tiny.sentences(20, seed=5))
    (first,) = run_all([recipe], [1], tmp_path / "runs", data_dir=data_dir)
    assert list(run_all([recipe], [1], tmp_path / "runs", data_dir=data_dir)) == [first]
    write_sentences(tmp_path / "test.bmes", tiny.sentences(30, seed=6))
    (again,) = run_all([recipe], [1], tmp_path / "runs", data_dir=data_dir)
    assert (len(first["test_counts"]), len(again["test_counts"])) == (20, 30)
    assert again["seconds"] == first["seconds"] and again["dev"] == first["dev"]  # it was not trained again
    (tmp_path / "test.bmes").unlink()
    assert list(run_all([recipe], [1], tmp_path / "runs", data_dir=data_dir)) == [again]


def test_seeds_that_were_scored_on_other_numbers_of_sentences_are_an_error(runs, recipes, tmp_path):
    shutil.copytree(runs, tmp_path / "runs")
    path = tmp_path / "runs" / "good-2" / "scores.json"
    scores = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(scores | {"dev_counts": scores["dev_counts"][:-1]}), encoding="utf-8")
    with pytest.raises(CigeError, match=r"not scored on the same dev sentences \(seeds of 23 and 24 sentences\)"):
        rows_of(recipes, tmp_path / "runs")


def test_seeds_that_were_scored_before_and_after_a_correction_of_the_test_file_are_an_error(data_dir, tmp_path):
    recipe, runs = tiny_run.tiny_recipe(n_epochs=1), tmp_path / "runs"
    recipe = replace(recipe, data=replace(recipe.data, test=str(tmp_path / "test.bmes")))
    sentences = tiny.sentences(20, seed=5)
    write_sentences(tmp_path / "test.bmes", sentences)
    list(run_all([recipe], [1, 2], runs, data_dir=data_dir))
    span = next(span for sentence in sentences for span in sentence.spans)
    corrected = [
        replace(s, spans=tuple(replace(x, label="ORG" if x == span else x.label) for x in s.spans)) for s in sentences
    ]
    assert corrected != sentences
    write_sentences(tmp_path / "test.bmes", corrected)  # as many sentences and entities as before
    list(run_all([recipe], [2], runs, data_dir=data_dir))
    with pytest.raises(CigeError, match=r"not scored on the same test sentences \(they changed between the seeds\)"):
        rows_of([recipe], runs)
    list(run_all([recipe], [1, 2], runs, data_dir=data_dir))
    assert rows_of([recipe], runs)[0].seeds == [1, 2]


def test_a_finished_run_is_read_and_not_repeated(runs, recipes, data_dir, monkeypatch):
    monkeypatch.setattr(scored_run, "score", lambda *_: pytest.fail("scored again"))
    assert len(list(run_all(recipes, [1, 2], runs, data_dir=data_dir))) == 4


def test_several_processes_give_the_same_scores(runs, recipes, data_dir, tmp_path):
    finished = {
        (x["name"], x["seed"]): x["dev"]["f1"] for x in run_all(recipes, [1], tmp_path, data_dir=data_dir, n_jobs=2)
    }
    for name in ("good", "bad"):
        assert finished[name, 1] == json.loads((runs / f"{name}-1" / "scores.json").read_text())["dev"]["f1"]


def test_two_recipes_of_one_name_are_refused(recipes, tmp_path):
    with pytest.raises(CigeError, match="several recipes are named good"):
        list(run_all([recipes[1], recipes[1]], [1], tmp_path))


def test_recipes_scored_on_different_sentences_are_refused(recipes, tmp_path):
    other = replace(recipes[0], data=replace(recipes[0].data, dev="other.bmes"))
    with pytest.raises(CigeError, match=r"good \(.*other.bmes\): scored on different sentences"):
        list(run_all([recipes[1], other], [1], tmp_path))
    fewer = replace(recipes[0], data=replace(recipes[0].data, n_train=5))
    check_comparable([recipes[1], fewer])  # learning from less is what one may want to compare


def test_recipes_of_several_corpora_are_refused_before_they_are_trained():
    with pytest.raises(RecipeError, match=r"the recipe has several corpora \("):
        check_comparable([load_recipe("today")])


def test_a_table_of_nothing_is_an_error(recipes, tmp_path, capsys):
    path = tmp_path / "good.yaml"
    path.write_text(recipe_to_yaml(recipes[1]), encoding="utf-8")
    assert main(["compare", str(path), "--runs", str(tmp_path / "runs"), "--table"]) == 2
    assert "no finished run of good; leave out --table to train them" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_a_gazetteer_that_is_missing_is_told_before_training(recipes, data_dir, tmp_path, capsys):
    path = tmp_path / "good.yaml"
    path.write_text(recipe_to_yaml(recipes[1]), encoding="utf-8")
    argv = ["compare", str(path), "--runs", str(tmp_path / "runs"), "--data-dir", data_dir, "--user-words"]
    assert main([*argv, "--gazetteer", str(tmp_path / "none.txt")]) == 2
    assert "none.txt" in capsys.readouterr().err and not (tmp_path / "runs").exists()
    assert main([*argv[:-1], "--gazetteer", str(path)]) == 2 and "give both" in capsys.readouterr().err


def test_gazetteers_of_one_file_name_are_both_measured_and_refused_lines_are_told(
    runs, recipes, tmp_path, capsys, monkeypatch
):
    measured = []
    monkeypatch.setattr(comparison, "user_words_of_runs", lambda *_, **options: measured.append(options) or {})
    path = tmp_path / "good.yaml"
    path.write_text(recipe_to_yaml(recipes[1]), encoding="utf-8")
    files = [tmp_path / name for name in ("a/words.txt", "b/words.txt", "more.txt")]
    for file in files:
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"南京市\n{file.parent.name}\n市\n", encoding="utf-8")
    argv = ["compare", str(path), "--runs", str(runs), "--table", "--no-speed", "--user-words", "--gazetteer"]
    assert main([*argv, *map(str, files)]) == 0
    assert list(measured[0]["gazetteers"]) == [str(files[0]), str(files[1]), "more.txt"]
    assert capsys.readouterr().err.count("'市': single character") == 3


def test_speeds_are_measured_and_kept(runs, recipes, data_dir):
    speeds = measure_speeds(recipes, runs, data_dir=data_dir)
    assert set(speeds) == {"good", "bad"} and all(v > 0 for x in speeds.values() for v in x.values())
    assert rows_of(recipes[1:], runs)[0].speed == speeds["good"]
    assert rows_of(recipes[1:], runs, seeds=[2])[0].speed == speeds["good"], "whichever seed was read"


def test_the_command_writes_table_rows_and_figure(runs, recipes, data_dir, tmp_path, capsys):
    files = []
    for recipe in recipes:
        files.append(tmp_path / f"{recipe.name}.yaml")
        files[-1].write_text(recipe_to_yaml(recipe), encoding="utf-8")
    argv = ["compare", *map(str, files), "--runs", str(runs), "--seeds", "2", "--data-dir", data_dir, "--user-words"]
    assert main(argv) == 0
    out = capsys.readouterr().out
    assert "good seed 1: dev F1" in out and "| good | 1, 2 |" in out and "names of the file" in out
    assert (runs / "comparison.md").read_text(encoding="utf-8").strip() in out
    assert [row["name"] for row in json.loads((runs / "comparison.json").read_text())] == ["good", "bad"]
    figure = (runs / "comparison.svg").read_text(encoding="utf-8")
    assert figure.count("<svg") == 1 and figure.startswith("<?xml")
    assert (runs / "user_words.png").read_bytes()[1:4] == b"PNG" and (runs / "user_words.svg").is_file()
    gained = json.loads((runs / "user_words.json").read_text(encoding="utf-8"))
    assert [len(seeds) for seeds in gained.values()] == [2, 2] and "unseen_recall" in gained["good"][0][0]


def test_user_words_are_measured_once_for_the_same_gazetteers(runs, recipes, data_dir, monkeypatch):
    measured = []

    def measure(*args, **options):
        measured.append(options["gazetteers"])
        return user_word_trials(*args, **options)

    monkeypatch.setattr(comparison, "user_word_trials", measure)
    lists = [{"a.txt": ["南京市"]}, {"a.txt": ["南京市"]}, {"a.txt": ["长江大桥"]}]
    found = [user_words_of_runs(recipes[:1], runs, data_dir=data_dir, gazetteers=words) for words in lists]
    assert measured == [lists[0]] * 2 + [lists[2]] * 2  # two seeds, and the second call measures nothing
    assert found[0] == found[1] and [t["words"] for t in found[2]["bad"][0]][-1] == "a.txt"


def row(name: str = "a", **changed: object) -> Row:
    values = {
        "name": name,
        "architecture": "flat",
        "seeds": [1, 2],
        "dev": [0.5, 0.6],
        "test": [0.4, 0.4],
        "span_f1": [0.7] * 2,
        "type_accuracy": [0.9] * 2,
        "n_parameters": 1_500_000,
        "seconds": [120.0, 180.0],
        "behind": None,
        "behind_low": None,
        "behind_high": None,
        "p_value": None,
        "p_covers_seeds": None,
        "speed": {16: 99.6},
    }
    return Row(**(values | changed))  # type: ignore[arg-type]


def test_figures_are_mean_and_standard_deviation():
    assert mean_sd([0.5]) == "50.00" and mean_sd([0.5, 0.6]) == "55.00 ± 7.07" and mean_sd([]) == "-"
    expected = (
        "| a | 1, 2 | 55.00 ± 7.07 | 40.00 ± 0.00 | 70.00 ± 0.00 | 90.00 ± 0.00 | - | best | 1.5M | 2.5 | - | 100 |"
    )
    assert expected in comparison_table([row()])


def test_differences_have_intervals_and_a_small_p_is_no_zero():
    assert [shown_p(p) for p in (1.0, 0.05, 0.001, 0.0009999, 1e-30)] == [
        "1.000",
        "0.050",
        "0.001",
        "< 0.001",
        "< 0.001",
    ]
    behind = {"behind": 0.021, "behind_low": -0.004, "behind_high": 0.0463, "p_covers_seeds": True}
    rows = [row(), *(row(name, p_value=p, **behind) for name, p in (("b", 0.2), ("c", 0.00001)))]
    table, note = comparison_table(rows), comparison_note(rows)
    assert "| behind the best by [95%] | p |" in table
    assert "| 2.10 [-0.40, 4.63] | 0.200 |" in table and "| 2.10 [-0.40, 4.63] | < 0.001 |" in table
    assert "all 3 pairs of these 3 systems (Holm)" in note and "on test" in note
    one = [row(), row("b", p_value=0.2, seeds=[1], **behind)]
    assert "one pair" in comparison_note(one) and "as much as the others" in comparison_note(one)


def test_systems_without_speed_are_left_out_of_the_figure(tmp_path):
    draw_f1_against_speed([], tmp_path / "f.png")
    assert (tmp_path / "f.png").read_bytes()[1:4] == b"PNG"


def test_the_figure_names_systems_without_what_all_names_share(tmp_path):
    rows = [
        row(name, seeds=[1], dev=[0.5], test=[], speed={16: speed})
        for name, speed in (("weibo-flat", 50.0), ("weibo-flat-head", 80.0), ("weibo-dcsan", 900.0))
    ]
    draw_f1_against_speed(rows, tmp_path / "figure.svg")
    drawn = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    for name in ("flat", "flat-head", "dcsan"):
        assert f"<!-- {name} -->" in drawn and f"<!-- weibo-{name} -->" not in drawn


def trials(*f1: float, unseen: bool = True) -> list[dict]:
    names = ["none", "names of the file", "names and random n-grams", "词典.txt"]
    found = [{"words": name, "n_words": 3, "f1": x} for name, x in zip(names, f1, strict=False)]
    return [trial | {"unseen_recall": trial["f1"] / 2} for trial in found] if unseen else found


def test_what_user_words_gain_as_a_table():
    table = user_word_table({"a": [trials(0.5, 0.9), trials(0.7, 0.7)], "b": [trials(0.1, 0.2)]}).splitlines()
    assert table[0] == "| system | seeds | none | names of the file |"
    assert table[2:] == ["| a | 2 | 60.0 / 30.0 | 80.0 / 40.0 |", "| b | 1 | 10.0 / 5.0 | 20.0 / 10.0 |"]
    assert "50.0 / - |" in user_word_table({"a": [trials(0.5, unseen=False)]})


def texts_of(path: Path) -> list[str]:
    return [
        element.text for element in ElementTree.parse(path).getroot().iter() if element.text and element.text.strip()
    ]


def test_what_user_words_gain_as_a_figure(tmp_path):
    found = {"flat $a$": [trials(0.5, 0.9, 0.8), trials(0.7, 0.7, 0.8)], "dcsan": [trials(0.41, 0.2, 0.3)] * 2}
    draw_user_words(found, tmp_path / "figure.svg")
    shown = texts_of(tmp_path / "figure.svg")
    for expected in (
        *found,
        "none",
        "names and random n-grams",
        "dev F1, %",
        "recall of entities unseen in training, %",
    ):
        assert expected in shown
    for height in ("60", "80", "41", "20", "30", "10"):  # means over seeds; of unseen entities half of it
        assert height in shown
    draw_user_words({"a": [trials(0.5, unseen=False)]}, tmp_path / "without.svg")
    assert "recall of entities unseen in training, %" not in texts_of(tmp_path / "without.svg")
    draw_user_words({}, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes()[1:4] == b"PNG"
