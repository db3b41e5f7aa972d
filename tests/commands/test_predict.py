"""`cige predict`: what is read, what is printed, and what is told of texts and words that cannot be used."""

import json
import subprocess
import sys

import pytest
import tiny
import tiny_grid
from tiny import TEXT

import cige
from cige.api import NER


@pytest.mark.parametrize("text", ["-北京", "--北京", "-5度", "-"[:1] + "，北京"])
def test_a_text_may_begin_with_a_dash(run, model, text):
    code, out, _ = run("predict", text, "--model", model, "--format", "jsonl")
    assert code == 0 and json.loads(out)["text"] == text


def test_what_looks_like_an_option_is_told_how_to_be_read(run, model):
    code, _, err = run("predict", "-x北京", "--model", model)
    assert code == 2 and "unrecognized arguments: -x北京" in err and "put -- before a text" in err
    assert json.loads(run("predict", "--model", model, "--format", "jsonl", "--", "-x北京")[1])["text"] == "-x北京"


def test_several_texts_or_files_are_told_how_to_be_given(run, model):
    for verb in ("predict", "explain"):
        code, _, err = run(verb, "a.txt", "b.txt", "--model", model)
        assert code == 2 and "unrecognized arguments: b.txt (give one text in quotes or one file; for several" in err
    assert "give one text" not in run("info", model, "b.txt")[2]


def test_a_file_may_be_read_as_one_document(run, tmp_path):
    lines = ["著名演员杜鹃在北京出席了发布会。", "随后杜鹃说，明年再来。很多人喜欢杜鹃。"]
    (tmp_path / "report.txt").write_text("\n".join(lines), encoding="utf-8")
    code, out, _ = run("predict", tmp_path / "report.txt", "--consistent", "--format", "jsonl")
    (found,) = map(json.loads, out.splitlines())
    assert code == 0 and found["text"] == "\n".join(lines)
    assert [e["text"] for e in found["entities"]].count("杜鹃") == 3
    for option in (["--words"], ["--recall", "0.9"]):
        code, _, err = run("predict", TEXT, "--consistent", *option)
        assert code == 2 and f"--consistent cannot be combined with {option[0]}" in err


def test_predict_prints_a_table(run, model):
    code, out, err = run("predict", TEXT, "--model", model)
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines() if line.strip()]
    assert lines[0] == [TEXT]
    assert lines[3][:3] == ["李明", "PER", "0-2"] and 0 < float(lines[3][3]) <= 1
    assert lines[4][:3] == ["北京", "LOC", "3-5"]


def test_predict_with_words_names_those_an_entity_rests_on(run, model, tmp_path):
    (tmp_path / "own.txt").write_text("轩辕\n", encoding="utf-8")
    out = run("predict", "轩辕在北京。", "--model", model, "--words", "--lexicon-add", tmp_path / "own.txt")[1]
    assert "轩辕*" in out and "%" in out
    line = json.loads(run("predict", "李明在北京。", "--model", model, "--words", "--format", "jsonl")[1])
    assert line["entities"][0]["words"] == [{"start": 3, "end": 5, "text": "北京", "is_user": False, "share": 1.0}]


def test_predict_jsonl_is_what_the_library_gives(run, model):
    code, out, _ = run("predict", TEXT, "--model", model, "--format", "jsonl")
    line = json.loads(out)
    assert code == 0 and list(line) == ["text", "entities"]
    assert list(line["entities"][0]) == ["start", "end", "label", "text", "score"]
    ner = NER(tiny.trained_model())
    assert line == {"text": TEXT, "entities": [pytest.approx(e.to_dict(), abs=1e-4) for e in ner(TEXT)]}


def test_predict_reads_a_file_line_by_line(run, model, tmp_path):
    path = tmp_path / "texts.txt"
    path.write_bytes("\ufeff李明在北京\r\n\n王小红在上海".encode())
    out = run("predict", path, "--model", model, "--format", "jsonl", "--batch-size", "2")[1]
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["text"] for line in lines] == ["李明在北京", "", "王小红在上海"]
    assert [len(line["entities"]) for line in lines] == [2, 0, 2]


@pytest.mark.parametrize("argv", [["-"], []])
def test_predict_reads_standard_input(run, model, type_in, argv):
    type_in("李明在北京\n".encode())
    assert json.loads(run("predict", *argv, "--model", model, "--format", "jsonl")[1])["text"] == "李明在北京"


def test_bytes_that_are_no_text_are_told_with_their_line(run, model, tmp_path, type_in):
    (tmp_path / "gbk.txt").write_bytes("李明\n".encode() + "北京".encode("gb18030"))
    code, _, err = run("predict", tmp_path / "gbk.txt", "--model", model)
    assert code == 2 and f"{tmp_path / 'gbk.txt'}, line 2: byte 0xb1 at column 1 is not UTF-8" in err
    type_in(b"\xff\n")
    assert "standard input, line 1" in run("predict", "--model", model)[2]


def test_what_looks_like_a_missing_file_is_not_read_as_a_text(run, model, tmp_path):
    for name in ("news.txt", "新闻/合同（1）.txt", "news.txt.gz"):
        assert f"{name}: no such file" in run("predict", name, "--model", model)[2]
    assert run("predict", "请打开：合同.txt", "--model", model)[0] == 0  # a sentence
    assert "is a folder" in run("predict", tmp_path, "--model", model)[2]


@pytest.mark.parametrize("text", ["123", "null", "[北京", "{a: 1}", "--- 北京", "\udce6", "\x1b[31m北京", "a/b.c"])
def test_any_text_is_taken_as_it_is(run, model, text):
    code, out, _ = run("predict", "--model", model, "--format", "jsonl", "--", text)
    assert code == 0 and json.loads(out)["text"] == text
    assert "\x1b" not in run("predict", "--model", model, "--", text)[1]


def test_user_words_come_from_a_file_and_bad_lines_are_told(run, model, tmp_path):
    (tmp_path / "own.txt").write_text("轩辕\n一\n澜沧江\n渊瀚海\n", encoding="utf-8")
    argv = ["predict", "请轩辕澜沧江渊瀚海说话", "--model", model, "--format", "jsonl"]
    _, out, err = run(*argv, "--lexicon-add", tmp_path / "own.txt")
    assert {e["text"] for e in json.loads(out)["entities"]} == {"轩辕", "澜沧江", "渊瀚海"}
    assert "3 taken, 1 refused" in err and "line 2" in err


def test_words_over_the_budget_are_told_on_standard_error(run, model, tmp_path):
    (tmp_path / "own.txt").write_text("\n".join("哈" * n for n in range(2, 40)), encoding="utf-8")
    _, _, err = run("predict", "哈" * 100, "--model", model, "--lexicon-add", tmp_path / "own.txt")
    assert "cige: " in err and "were left out" in err and ".py:" not in err


def test_batch_size_must_be_a_number(run, model):
    code, _, err = run("predict", TEXT, "--model", model, "--batch-size", "0")
    assert code == 2 and "expected a whole number of at least 1" in err


@pytest.mark.parametrize("form", ["jsonl", "table"])
def test_a_reader_that_has_enough_is_no_error(model, form):
    """`yes TEXT | cige predict | head -1` ends, with one whole line, 141 and nothing on standard error."""
    command = f"yes {TEXT} | {sys.executable} -m cige.cli predict --model {model} --format {form} | head -1"
    done = subprocess.run(
        ["bash", "-c", command + "; exit ${PIPESTATUS[1]}"], capture_output=True, text=True, timeout=60
    )
    assert (json.loads(done.stdout)["text"] if form == "jsonl" else done.stdout.strip()) == TEXT
    assert done.stderr == "" and done.returncode == 141


def test_chinese_is_printed_whatever_the_locale(model):
    command = [sys.executable, "-m", "cige.cli", "predict", TEXT, "--model", model, "--format", "jsonl"]
    environment = {"PYTHONIOENCODING": "ascii", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, capture_output=True, timeout=60, env=environment)
    assert json.loads(done.stdout.decode("utf-8"))["text"] == TEXT


def test_predict_reports_what_is_asked(run, model):
    argv = ["predict", "李明在北京。", "--model", model, "--format", "jsonl"]
    labels = [e["label"] for e in json.loads(run(*argv, "--labels", "PER")[1])["entities"]]
    assert labels == ["PER"]
    assert json.loads(run(*argv, "--min-score", "1")[1])["entities"] == []
    assert "given '2', expected a number from 0 to 1" in run(*argv, "--min-score", "2")[2]
    assert "did you mean PER?" in run(*argv, "--labels", "PERS")[2]
    assert "cige calibrate" in run(*argv, "--recall", "0.9")[2]


def test_nested_entities_are_reported_flat_if_asked(run, tmp_path):
    tiny_grid.model().save(tmp_path / "nested")
    (tmp_path / "texts.txt").write_text("李明在北京\n", encoding="utf-8")
    ner = cige.load(tmp_path / "nested")
    for options, nested in (((), True), (("--flat",), False)):
        expected = [entity.to_dict() for entity in ner("李明在北京", nested=nested)]
        argv = ["李明在北京", "--model", tmp_path / "nested", "--format", "jsonl", *options]
        assert json.loads(run("predict", *argv)[1])["entities"] == expected
        output = tmp_path / f"out{nested}"
        argv = [tmp_path / "texts.txt", output, "--model", tmp_path / "nested", "--processes", "1", *options]
        assert run("annotate", *argv)[0] == 0
        (part,) = (output / "data").iterdir()
        assert json.loads(part.read_text(encoding="utf-8"))["entities"] == expected
        settings = json.loads((output / "manifest.json").read_text(encoding="utf-8"))["settings"]
        assert settings.get("nested", True) is nested
    assert len(ner("李明在北京", nested=False)) < len(ner("李明在北京"))
