"""`cige user-words` with several models: one table, one figure."""

from __future__ import annotations

import json

import pytest
import tiny

from cige.cli import main
from cige.data import write_sentences
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
    table = capsys.readouterr().out.splitlines()[-4:]
    assert table[0] == "| system | seeds | none | names of the file | names and random n-grams |"
    assert [line.split("|")[1].strip() for line in table[2:]] == ["flat", "dcsan"]


def test_several_models_as_json_and_figure(argv, capsys, tmp_path):
    assert main([*argv, "--json", "--figure", str(tmp_path / "gain.svg")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == ["flat", "dcsan"]
    for trials in found.values():
        assert [trial["words"] for trial in trials] == ["none", "names of the file", "names and random n-grams"]
    assert ">dcsan<" in (tmp_path / "gain.svg").read_text(encoding="utf-8")


def test_models_of_one_folder_name_keep_their_paths(argv, capsys):
    same = argv[2]
    assert main(["user-words", "--model", same, "--model", same + "/", *argv[5:], "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)) == [same, same + "/"]


def test_a_figure_in_no_format_is_told(argv, capsys, tmp_path):
    assert main([*argv, "--json", "--figure", str(tmp_path / "gain.txt")]) == 2
    assert "gain.txt: ends in '.txt'; expected .svg, .png or .pdf" in capsys.readouterr().err
