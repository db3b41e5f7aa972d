"""`cige names`: info, add, replace and build; and `--names` of the commands that load a model."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tiny import CONFIG, model

from cige import load
from cige.cli import main
from cige.lexicon.report import WordListWarning


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model"
    facts = {"names": {"version": "5", "date": "2026-11-25"}}
    replace(model(config=replace(CONFIG, gazetteers=True)), facts=facts).save(path)
    return path


def test_info_of_a_model(folder, capsys):
    assert main(["names", "info", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("9 names (version 5, of 2026-11-25)") and "3  LOC/good" in shown
    assert main(["names", "info", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kinds"] == {"LOC/good": 3, "ORG": 4, "PER": 3}


def test_add_writes_a_list_that_the_model_reads(folder, tmp_path, capsys):
    (tmp_path / "more.tsv").write_text("说话\tPER/staff\n北京\tPER\n王\tPER\n", encoding="utf-8")
    output = tmp_path / "names.tsv"
    assert main(["names", "add", str(tmp_path / "more.tsv"), "--to", str(folder), "--output", str(output)]) == 0
    assert "10 names, 1 of them new" in (shown := capsys.readouterr().out) and "single character" in shown
    lines = output.read_text(encoding="utf-8").splitlines()
    assert lines[:2] == ["# version: 5", "# date: 2026-11-25"] and "北京\tLOC/good,ORG,PER" in lines
    assert main(["predict", "请张三北京", "--model", str(folder), "--names", str(output)]) == 0


def test_lines_of_a_list_that_are_refused_are_told_without_a_place_in_the_source(folder, tmp_path, capsys):
    (tmp_path / "names.tsv").write_text("北京\tLOC/good\n无类\n", encoding="utf-8")
    assert main(["predict", "我在北京", "--model", str(folder), "--names", str(tmp_path / "names.tsv")]) == 0
    assert capsys.readouterr().err == (
        f"cige: {tmp_path}/names.tsv (names): 1 taken, 1 refused\n  1 x no kind after a tab\n"
        "  line 2: '无类': no kind after a tab\n"
    )


def test_replace_writes_a_model_that_reads_the_list_with_the_same_weights(folder, tmp_path, capsys):
    listed = tmp_path / "names.tsv"
    listed.write_text("# version: 6\n说话\tPER\n北京\tLOC/good\n王\tPER\n", encoding="utf-8")
    output = tmp_path / "other"
    (folder / "README.md").write_text("added by hand", encoding="utf-8")
    given = ["names", "replace", str(listed), "--model", str(folder)]
    assert main([*given, "--output", str(output)]) == 0
    assert "2 names, " in (shown := capsys.readouterr().out) and "single character" in shown
    assert main(["names", "info", str(output)]) == 0
    assert capsys.readouterr().out.startswith("2 names (version 6)\n")
    weights = [(path / "model.safetensors").read_bytes() for path in (folder, output)]
    assert weights[0] == weights[1]
    texts = ["请张三北京说话", "我在北京"]
    with pytest.warns(WordListWarning):
        assert load(output)(texts, min_score=0) == load(folder, names=listed)(texts, min_score=0)
    facts = [json.loads((path / "manifest.json").read_text(encoding="utf-8")) for path in (folder, output)]
    assert {key for key in facts[0] if facts[0][key] != facts[1][key]} == {"facts", "files", "lexicon_fingerprint"}
    assert [*facts[0]["files"]] == [*facts[1]["files"]] and (output / "README.md").exists()
    assert main([*given, "--output", str(folder)]) == 2
    assert "the folder of the model itself" in capsys.readouterr().err
    assert main([*given, "--output", str(folder / "copy")]) == 2 and not (folder / "copy").exists()
    assert "in the folder of the model itself" in capsys.readouterr().err
    (output / "vocabulary.safetensors").write_bytes(b"damaged")
    assert main(["names", "replace", str(listed), "--model", str(output), "--output", str(tmp_path / "x")]) == 2
    assert "other" in capsys.readouterr().err and not (tmp_path / "x").exists()


def test_build(tmp_path, capsys):
    pytest.importorskip("jieba")
    for name, text in {
        "rows.tsv": "华为\tCOMPANY\tshort\n女子力\tCOMPANY\tshort\n学习\tCOMPANY\tshort\n",
        "kinds.tsv": "COMPANY\tshort\tCOMPANY/short\t1\tdrop\nGAME\tlist\tGAME\t0\tkeep\n",
        "text.txt": "华为手机，学习\n",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    files = [str(tmp_path / name) for name in ("rows.tsv", "kinds.tsv", "text.txt", "names.tsv")]
    assert main(["names", "build", files[0], "--kinds", files[1], "--text", files[2], "--output", files[3]]) == 0
    shown = capsys.readouterr().out
    assert "1  COMPANY/short (1 too rare, 1 common words)" in shown and "0  GAME (0 too rare, 0 common words)" in shown
    assert (tmp_path / "names.tsv").read_text(encoding="utf-8") == "华为\tCOMPANY/short\n"


def test_a_model_without_a_list_is_an_error(tmp_path, capsys):
    model(config=CONFIG).save(tmp_path / "plain")
    assert main(["names", "info", str(tmp_path / "plain")]) == 2
    shown = "".join(capsys.readouterr().err.split())
    assert "plain:thismodelwastrainedwithoutalistofnames" in shown


@pytest.mark.parametrize("name", ["missing.tsv", "lists/missing.tsv", "missing.tsv.xz"])
def test_a_list_that_is_not_there_is_said_to_be_a_file(name, tmp_path, capsys):
    output = str(tmp_path / "names.tsv")
    for arguments in (["names", "info", name], ["names", "add", output, "--to", name, "--output", output]):
        (tmp_path / "names.tsv").write_text("北京\tLOC\n", encoding="utf-8")
        assert main(arguments) == 2
        shown = " ".join(capsys.readouterr().err.split())
        assert f"{name}: no such file; expected a list of names" in shown and "or a model" in shown
    assert main(["names", "info", "missing"]) == 2
    assert "no such folder" in capsys.readouterr().err


@pytest.mark.parametrize(("verb", "of"), [("add", "--to"), ("replace", "--model")])
def test_kinds_that_the_list_lacks_are_named_with_their_file_and_line(verb, of, folder, tmp_path, capsys):
    (tmp_path / "more.tsv").write_text("北京\tLOC\n原神\tGAME\n", encoding="utf-8")
    assert main(["names", verb, str(tmp_path / "more.tsv"), of, str(folder), "--output", str(tmp_path / "o")]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith(f"cige: {tmp_path / 'more.tsv'}, line 2: kind 'GAME'; the model knows ")
    assert not (tmp_path / "o").exists()
