"""`cige explain`: the page, a file as one text, and a folder that is in the way."""

import json

from tiny import TEXT


def test_an_operating_system_error_says_what_is_in_the_way(run, model, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = run("explain", TEXT, "--model", model, "--output", tmp_path / "file" / "page.html")
    assert code == 2 and err.startswith("cige: ") and err.count("\n") == 1
    assert f"{tmp_path / 'file'} is a file, and a folder is needed in its place" in err


def test_explain(run, model, tmp_path):
    code, out, _ = run("explain", "李明在南京市长江大桥。", "--model", model)
    assert code == 0 and "长江大桥" in out and "entities" in out
    page = tmp_path / "page.html"
    assert f"wrote {page}" in run("explain", TEXT, "--model", model, "--output", page)[1]
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    found = json.loads(run("explain", TEXT, "--model", model, "--json", "--no-removals", "--n-words", "1")[1])
    assert found["n_tried"] == 0 and len(found["entities"][0]["words"]) == 1


def test_explain_reads_a_file_as_one_text(run, model, tmp_path):
    (tmp_path / "two.txt").write_text("李明在北京\n王小红在上海\n", encoding="utf-8")
    found = json.loads(run("explain", tmp_path / "two.txt", "--model", model, "--json")[1])
    assert found["text"] == "李明在北京\n王小红在上海" and len(found["entities"]) == 4


def test_explain_of_a_long_text_shows_a_bar_on_a_terminal(run, model, monkeypatch):
    from rich.console import Console

    monkeypatch.setattr(
        "cige.text.terminal_progress.Console", lambda stderr: Console(stderr=stderr, force_terminal=True)
    )
    long = "李明在北京。" * 200
    assert "1200/1200" in run("explain", long, "--model", model, "--json")[2]
    assert run("explain", long, "--model", model, "--json", "--no-removals")[2].count("%") == 0
    assert "/6" not in run("explain", TEXT, "--model", model, "--json")[2]
