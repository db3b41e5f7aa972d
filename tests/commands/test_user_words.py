"""`cige user-words` with several models: one table, one figure."""

from __future__ import annotations

import json

import pytest
import tiny
import tiny_grid

from cige.cli import main
from cige.data import Sentence, Span, write_sentences
from cige.models.dcsan import DcsanConfig


@pytest.fixture(scope="module")
def argv(tmp_path_factory) -> list[str]:
    folder = tmp_path_factory.mktemp("models")
    tiny.model().save(folder / "flat" / "model")
    config = DcsanConfig(width=16, n_cross_heads=2, n_self_heads=2, ff_width=16)
    tiny.model(architecture="dcsan", config=config).save(folder / "dcsan")
    write_sentences(folder / "dev.bmes", tiny.sentences(12, seed=5))
    models = [str(folder / "flat" / "model"), str(folder / "dcsan")]
    return ["user-words", "--model", models[0], "--model", models[1], "--data", str(folder / "dev.bmes")]


def test_several_models_make_one_table(argv, capsys):
    assert main(argv) == 0
    table = capsys.readouterr().out.splitlines()[-5:]
    assert table[0] == "| system | seeds | none | names of the file | names and random n-grams |"
    assert [line.split("|")[1].strip() for line in table[2:4]] == ["flat", "dcsan"]
    assert table[4] == "| (share of the names listed) |  | 0.0% | 100.0% | 100.0% |"


def test_several_models_as_json_and_figure(argv, capsys, tmp_path):
    assert main([*argv, "--json", "--figure", str(tmp_path / "gain.svg")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == ["flat", "dcsan"]
    for trials in found.values():
        assert [trial["words"] for trial in trials] == ["none", "names of the file", "names and random n-grams"]
        assert [trial["listed_names"] for trial in trials] == [0.0, 1.0, 1.0]
    assert ">dcsan<" in (tmp_path / "gain.svg").read_text(encoding="utf-8")


def test_models_of_one_folder_name_keep_their_paths(argv, capsys):
    same = argv[2]
    assert main(["user-words", "--model", same, "--model", same + "/", *argv[5:], "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)) == [same, same + "/"]


def test_a_model_of_nested_entities_is_measured_on_them(tmp_path, capsys):
    tiny_grid.model().save(tmp_path / "model")
    write_sentences(tmp_path / "dev.jsonl", [Sentence("北京大学在北京", (Span(0, 2, "LOC"), Span(0, 4, "ORG")))])
    argv = ["user-words", "--model", str(tmp_path / "model"), "--data", str(tmp_path / "dev.jsonl"), "--json"]
    assert main(argv) == 0
    of_file = next(row for row in json.loads(capsys.readouterr().out) if row["words"] == "names of the file")
    assert (of_file["n_words"], of_file["listed_names"]) == (2, 1.0)


def test_a_figure_in_no_format_is_told(argv, capsys, tmp_path):
    assert main([*argv, "--json", "--figure", str(tmp_path / "gain.txt")]) == 2
    assert "gain.txt: ends in '.txt'; expected .svg, .png or .pdf" in capsys.readouterr().err


def test_the_recall_of_a_gazetteer_stands_beside_its_scores(tmp_path, capsys):
    tiny.model().save(tmp_path / "model")
    sentences = tiny.sentences(12, seed=5)
    write_sentences(tmp_path / "dev.bmes", sentences)
    entities = [s.text[x.start : x.end] for s in sentences for x in s.spans]
    listed = sorted(set(entities))[::3]
    (tmp_path / "some.txt").write_text("\n".join([*listed, "不在其中"]), encoding="utf-8")
    argv = ["user-words", "--model", str(tmp_path / "model"), "--data", str(tmp_path / "dev.bmes")]
    argv += ["--gazetteer", str(tmp_path / "some.txt")]
    assert main([*argv, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)[-1]
    assert found["n_words"] == len(listed) + 1
    assert found["listed_names"] == len(listed) / len(set(entities))
    assert found["listed_entities"] == sum(name in listed for name in entities) / len(entities)
    assert main(argv) == 0
    out = capsys.readouterr().out
    assert "names listed" in out and "entities listed" in out and f"{100 * found['listed_names']:.2f}" in out


def test_user_words_gain(run, model, tmp_path):
    write_sentences(tmp_path / "new.bmes", tiny.sentences(60, seed=5, new_name_prob=0.9))
    write_sentences(tmp_path / "train.bmes", tiny.sentences(30))
    (tmp_path / "places.txt").write_text("北京\n上海\n", encoding="utf-8")
    argv = ["user-words", "--model", model, "--data", tmp_path / "new.bmes", "--train", tmp_path / "train.bmes"]
    argv += ["--gazetteer", tmp_path / "places.txt"]
    none, names, noisy, places = json.loads(run(*argv, "--json")[1])
    assert (none["n_words"], places["n_words"]) == (0, 2)
    assert noisy["n_words"] > 1.5 * names["n_words"] > 0
    assert names["f1"] > none["f1"] + 0.1 and names["unseen_recall"] > none["unseen_recall"] + 0.1
    # Whether a model of a few steps gains by the noisy list depends on how sums are rounded, so on the processor.
    assert names["f1"] > noisy["f1"] != none["f1"]
    out = run(*argv)[1]
    assert "R of unseen" in out and "names and random n-grams" in out
