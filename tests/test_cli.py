"""The command line: every verb, what it prints, and what a mistake costs."""

import argparse
import io
import json
import re
import shlex
import subprocess
import sys

import pytest
import tiny
import tiny_grid

import cige
from cige.api import NER
from cige.cli import VERBS, command_of, main, parser_of
from cige.commands import compare, train
from cige.data import Sentence, Span, read_sentences, write_sentences
from cige.extras import install_command
from cige.lexicon.lexicon import Lexicon

TEXT = "李明在北京。"


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("cli") / "model"
    NER(tiny.trained_model()).save_pretrained(folder)
    return str(folder)


@pytest.fixture
def data(tmp_path) -> str:
    path = tmp_path / "test.bmes"
    write_sentences(path, tiny.sentences(12, seed=4))
    return str(path)


@pytest.fixture
def run(capsys):
    """Run a command; gives its exit code, standard output and standard error."""

    def run_command(*argv):
        try:
            code = main([str(a) for a in argv])
        except SystemExit as stop:  # argparse
            code = stop.code
        return code, *capsys.readouterr()

    return run_command


@pytest.fixture
def type_in(monkeypatch):
    def set_stdin(content: bytes):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))

    return set_stdin


@pytest.fixture(autouse=True)
def english(monkeypatch):
    """The language of help and messages, whatever that of this machine is."""
    monkeypatch.setenv("LC_ALL", "C.UTF-8")


# ---- the frame


@pytest.mark.parametrize("command", [train, compare])
def test_settings_given_one_after_another_all_count(command):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    given = ["recipe.yaml", "--data", "data", "--output", "run", "--set", "a=1", "b=2", "--set", "c=3"]
    assert parser.parse_known_args(given)[0].set == ["a=1", "b=2", "c=3"]
    assert parser.parse_known_args(given[:5])[0].set == []


def test_help_names_every_verb(run):
    code, out, _ = run()
    assert code == 0 and all(f"  {verb} " in out for verb in VERBS)
    assert run("--help")[0] == 0
    assert run("--version")[1].strip()


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(run, verb):
    code, out, _ = run(verb, "--help")
    assert code == 0
    assert f"usage: cige {verb}" in out and f"cige {verb} " in out.split("\n\n", 1)[1]


def test_an_unknown_verb_is_told_with_the_nearest(run):
    code, out, err = run("predcit")
    assert (code, out) == (2, "") and err.startswith("cige: unknown verb 'predcit'") and "did you mean predict?" in err


def test_errors_are_one_line_and_no_traceback(run, tmp_path):
    for argv, expected in [
        (["predict", TEXT, "--model", tmp_path], "no manifest.json in it"),
        (["predict", TEXT, "--model", "./none"], "no such folder"),
        (["evaluate", "--data", tmp_path / "none.bmes", "--model", tmp_path], "none.bmes"),
        (["train", tmp_path / "none.yaml", "--output", tmp_path / "run"], "none.yaml"),
        (["lexicon", "info", tmp_path / "none"], "none"),
        (["data", "fetch", "webo"], "did you mean weibo?"),
        (["explain", TEXT, "-m", tmp_path, "--n-words", "0"], "no manifest.json in it"),
    ]:
        code, out, err = run(*argv)
        assert (code, out) == (2, ""), argv
        assert err.startswith("cige: ") and err.count("\n") == 1 and expected in err, err


def test_an_operating_system_error_says_what_is_in_the_way(run, model, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = run("explain", TEXT, "--model", model, "--output", tmp_path / "file" / "page.html")
    assert code == 2 and err.startswith("cige: ") and err.count("\n") == 1
    assert f"{tmp_path / 'file'} is a file, and a folder is needed in its place" in err


@pytest.mark.parametrize("text", ["-北京", "--北京", "-5度", "-"[:1] + "，北京"])
def test_a_text_may_begin_with_a_dash(run, model, text):
    code, out, _ = run("predict", text, "--model", model, "--format", "jsonl")
    assert code == 0 and json.loads(out)["text"] == text


def test_what_looks_like_an_option_is_told_how_to_be_read(run, model):
    code, _, err = run("predict", "-x北京", "--model", model)
    assert code == 2 and "unrecognized arguments: -x北京" in err and "put -- before a text" in err
    assert json.loads(run("predict", "--model", model, "--format", "jsonl", "--", "-x北京")[1])["text"] == "-x北京"


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


@pytest.mark.parametrize("device", ["cuda", "gpu"])
@pytest.mark.parametrize("verb", ["predict", "evaluate", "train", "search", "compare"])
def test_a_device_that_is_not_there_is_told_in_one_line(run, data, monkeypatch, tmp_path, verb, device):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    recipe = tmp_path / "r.yaml"
    recipe.write_text(f"data:\n  train: {data}\n  dev: {data}\n", encoding="utf-8")
    argv = {
        "predict": [TEXT],
        "evaluate": ["--data", data],
        "train": ["--data", data, "--output", tmp_path / "run"],
        "search": [recipe, "--output", tmp_path / "run", "--n-trials", "1"],
        "compare": [recipe, "--runs", tmp_path / "runs"],
    }[verb]
    code, _, err = run(verb, *argv, "--device", device)
    assert code == 2 and err.startswith("cige: device ") and err.count("\n") == 1
    assert "finds no GPU" in err


@pytest.mark.parametrize("verb", ["predict", "explain", "evaluate", "lexicon"])
def test_utf_16_is_named(run, model, tmp_path, verb):
    path = tmp_path / "texts.txt"
    for content in ("李明在北京\n", "\ufeff李明 O\n"):
        path.write_bytes(content.encode("utf-16-le" if content[0] == "\ufeff" else "utf-16"))
        argv = {"evaluate": ["--data", path], "lexicon": ["match", TEXT, "--lexicon", path]}.get(verb, [path])
        code, _, err = run(verb, *argv, *([] if verb == "lexicon" else ["--model", model]))
        assert code == 2 and "line 1" in err and "UTF-16" in err and "iconv -f UTF-16" in err


def test_python_m_cige_is_the_program():
    done = subprocess.run([sys.executable, "-m", "cige", "predit"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "did you mean predict?" in done.stderr


@pytest.mark.parametrize("options", [[], ["--no-resume"]])
def test_a_folder_of_somebody_else_is_not_written_to(run, data, tmp_path, options):
    foreign = tmp_path / "thesis"
    (foreign / "model").mkdir(parents=True)
    (foreign / "notes.txt").write_text("years of work")
    code, _, err = run("train", "--data", data, "--output", foreign, "--device", "cpu", *options)
    assert code == 2 and "with files that no run wrote (model, notes.txt)" in err
    assert sorted(p.name for p in foreign.iterdir()) == ["model", "notes.txt"]
    code, _, err = run("train", "--data", data, "--output", foreign / "notes.txt", "--device", "cpu")
    assert code == 2 and "notes.txt is a file; expected a folder" in err


# ---- info and drawings


def test_a_missing_extra_is_told_how_to_get(run, monkeypatch, tmp_path):
    def fail(name):
        raise ModuleNotFoundError("No module named 'gensim'", name="gensim")

    monkeypatch.setattr("cige.cli.import_module", fail)
    code, _, err = run("vectors", "train", tmp_path)
    assert code == 2 and "needs gensim" in err and install_command("train") in err


# ---- predict


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
    assert "no such file" in run("predict", "news.txt", "--model", model)[2]
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


# ---- explain


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

    monkeypatch.setattr("cige.commands.read_bar.Console", lambda stderr: Console(stderr=stderr, force_terminal=True))
    long = "李明在北京。" * 200
    assert "1200/1200" in run("explain", long, "--model", model, "--json")[2]
    assert run("explain", long, "--model", model, "--json", "--no-removals")[2].count("%") == 0
    assert "/6" not in run("explain", TEXT, "--model", model, "--json")[2]


# ---- evaluate and user-words


def test_evaluate_json_has_every_field(run, model, data):
    code, out, err = run("evaluate", "--model", model, "--data", data, "--train", data, "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert {
        "f1", "precision", "recall", "span_f1", "type_accuracy", "per_type", "n_sentences", "sentences_per_second",
        "by_length", "by_lexicon", "by_seen",
    } <= set(found)  # fmt: skip
    assert found["f1"] == 1.0 and found["n_sentences"] == 12 and found["sentences_per_second"] > 0
    assert set(found["per_type"]) == set(tiny.LABELS)


def test_evaluate_prints_a_table(run, model, data):
    out = run("evaluate", "--model", model, "--data", data)[1]
    assert "expected calibration error" in out
    assert "100.00" in out and "12 sentences" in out and "PER" in out


def test_labels_are_mapped_and_an_unmapped_one_is_an_error(run, model, tmp_path):
    names = {"PER": "NR", "LOC": "NS", "ORG": "NT"}
    renamed = [
        Sentence(s.text, tuple(Span(x.start, x.end, names[x.label]) for x in s.spans))
        for s in tiny.sentences(9, seed=4)
    ]
    write_sentences(tmp_path / "msra.bmes", renamed)
    argv = ["evaluate", "--model", model, "--data", tmp_path / "msra.bmes", "--json"]
    assert json.loads(run(*argv, "--labels", "NR=PER,NS=LOC,NT=ORG")[1])["f1"] == 1.0
    code, _, err = run(*argv, "--labels", "NR=PER,NS=LOC")
    assert code == 2 and "no label of the model for NT" in err
    assert run(*argv, "--labels", "NR=PER,NS=LOC,NT=COMPANY")[0] == 2


def test_a_type_that_the_data_never_has_is_told(run, model, tmp_path):
    write_sentences(tmp_path / "per.bmes", [Sentence("李明在北京。", (Span(0, 2, "PER"),))])
    _, out, err = run("evaluate", "--model", model, "--data", tmp_path / "per.bmes", "--json")
    assert json.loads(out)["precision"] == 0.5
    assert "no entity of" in err and "LOC or ORG" in err


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


# ---- lexicon, vectors, data, info


def test_lexicon_build_match_and_info(run, tmp_path):
    (tmp_path / "words.txt").write_text("南京\t5\n南京市\t3\n长江大桥\t1\n一\t9\n", encoding="utf-8")
    code, out, _ = run("lexicon", "build", tmp_path / "words.txt", tmp_path / "lex", "--min-count", "2")
    assert code == 0 and "2 taken, 1 refused, 1 not needed" in out and "single character" in out
    assert list(Lexicon.load(tmp_path / "lex")) == ["南京", "南京市"]
    (tmp_path / "own.txt").write_text("大桥\n", encoding="utf-8")
    argv = ["lexicon", "match", "南京市大桥", "--lexicon", tmp_path / "lex", "--lexicon-add", tmp_path / "own.txt"]
    assert run(*argv)[1].splitlines() == ["0-2\t南京", "0-3\t南京市", "3-5\t大桥*"]
    assert json.loads(run(*argv, "--format", "jsonl")[1])["words"][2] == {
        "start": 3, "end": 5, "text": "大桥", "is_user": True,
    }  # fmt: skip
    info = run("lexicon", "info", tmp_path / "lex")[1]
    assert "words        2" in info and Lexicon.load(tmp_path / "lex").fingerprint in info


def test_lexicon_of_a_model_or_of_a_list(run, model, tmp_path):
    assert f"words        {len(tiny.WORDS)}" in run("lexicon", "info", model)[1]
    (tmp_path / "words.txt").write_text("南京\n", encoding="utf-8")
    assert run("lexicon", "match", "在南京", "--lexicon", tmp_path / "words.txt")[1] == "1-3\t南京\n"


def test_vectors_convert(run, tmp_path):
    (tmp_path / "w2v.txt").write_text("2 3\n南京 1 2 3\n北京 4 5 6\n", encoding="utf-8")
    code, out, _ = run("vectors", "convert", tmp_path / "w2v.txt", tmp_path / "vectors")
    assert code == 0 and "2 taken" in out
    from cige.lexicon.vectors import VectorTable

    assert VectorTable.load(tmp_path / "vectors").width == 3


def test_vectors_train(run, tmp_path):
    pytest.importorskip("gensim")
    (tmp_path / "corpus.txt").write_text("南京市长江大桥\n北京市\n" * 20, encoding="utf-8")
    code, out, _ = run("vectors", "train", tmp_path / "corpus.txt", tmp_path / "v", "--unit", "char", "--width", "4")
    assert code == 0 and "wrote" in out and (tmp_path / "v" / "char.npz").is_file()


def test_data_stats(run, data, tmp_path):
    (tmp_path / "words.txt").write_text("\n".join(tiny.NAMES["LOC"]), encoding="utf-8")
    found = json.loads(run("data", "stats", data, "--lexicon", tmp_path / "words.txt", "--json")[1])
    assert found["n_sentences"] == 12 and found["n_words"] >= 1
    assert "sentences" in run("data", "stats", data)[1]


def test_data_with_nested_entities(run, tmp_path):
    nested, names = tmp_path / "nested.jsonl", tmp_path / "names.txt"
    spans = (Span(0, 2, "LOC"), Span(0, 4, "ORG"), Span(5, 12, "ORG", ((5, 7), (10, 12))), Span(8, 12, "ORG"))
    write_sentences(nested, [Sentence("北京大学与第一和口腔医院", spans)])
    assert json.loads(run("data", "stats", nested, "--json")[1])["labels"] == {"ORG": 3, "LOC": 1}
    assert run("data", "names", nested, "--output", names)[0] == 0
    assert names.read_text(encoding="utf-8").split() == ["北京", "北京大学", "口腔医院"]
    assert run("data", "convert", nested, tmp_path / "same.jsonl")[0] == 0
    assert (tmp_path / "same.jsonl").read_bytes() == nested.read_bytes()
    write_sentences(nested, [Sentence("北京大学与第一和口腔医院", spans[:2])])
    code, _, err = run("data", "convert", nested, tmp_path / "x.bmes")
    assert code == 2 and "JSON lines (.jsonl) can hold nested entities" in err
    assert run("data", "convert", nested, tmp_path / "x.bmes", "--repair")[0] == 0
    assert [s.spans for s in read_sentences(tmp_path / "x.bmes")] == [spans[1:2]]
    assert run("convert", nested, tmp_path / "x.json", "--to", "cluener")[0] == 0
    assert run("convert", tmp_path / "x.json", tmp_path / "back.jsonl", "--from", "cluener")[0] == 0
    assert (tmp_path / "back.jsonl").read_bytes() == nested.read_bytes()


def test_data_convert_and_repair(run, data, tmp_path):
    assert run("data", "convert", data, tmp_path / "out.jsonl")[0] == 0
    assert [s.spans for s in read_sentences(tmp_path / "out.jsonl")] == [s.spans for s in read_sentences(data)]
    (tmp_path / "bad.bmes").write_text("北 M-LOC\n京 E-LOC\n", encoding="utf-8")
    code, _, err = run("data", "convert", tmp_path / "bad.bmes", tmp_path / "repaired.bmes")
    assert code == 2 and "line 1" in err and not (tmp_path / "repaired.bmes").exists()
    code, _, err = run("data", "convert", tmp_path / "bad.bmes", tmp_path / "repaired.bmes", "--repair")
    assert code == 0 and "line 1: repaired" in err
    assert read_sentences(tmp_path / "repaired.bmes")[0].spans == (Span(0, 2, "LOC"),)


def test_the_former_verb_of_benchmarks_says_where_they_are(run):
    code, out, err = run("bench", "match", "--rounds", "2")
    assert (code, out) == (2, "") and "source tree" in err and "`python -m benchmarks match --rounds 2`" in err
    assert "`python -m benchmarks NAME`" in run("bench")[2] and err.count("\n") == 1
    assert "bench" not in VERBS and "did you mean" not in err


def test_info(run, model):
    out = run("info", "--model", model)[1]
    rows = [line.split() for line in out.splitlines()]
    assert ["lexicon", "words", str(len(tiny.WORDS))] in rows and "LOC, ORG, PER" in out and "torch" in out
    assert "{" not in out
    assert json.loads(run("info", "--model", model, "--json")[1])["model"]["scheme"] == "BMES"


def test_train_hands_its_options_on(run, monkeypatch, tmp_path):
    given = {}

    class Result:
        name, seed, dev_f1, best_epoch, seconds, model = "r", 3, 0.5, 1, 0.1, tmp_path

    def train(recipe, output, **options):
        given.update(options, n_epochs=recipe.training.n_epochs, output=output)
        return Result()

    monkeypatch.setattr("cige.training.train.train", train)
    (tmp_path / "r.yaml").write_text("data:\n  dataset: weibo\n", encoding="utf-8")
    argv = ["train", tmp_path / "r.yaml", "-o", tmp_path / "run", "--seed", "3", "--set", "training.n_epochs=2"]
    code, out, _ = run(*argv, "--data-dir", "d", "--device", "cpu", "--no-resume")
    assert code == 0 and "dev F1 50.00" in out
    assert given == {
        "seed": 3, "data_dir": "d", "device": "cpu", "resume": False, "n_epochs": 2, "output": str(tmp_path / "run"),
    }  # fmt: skip
    code, _, err = run(*argv[:-1], "training.n_epoch=2")
    assert code == 2 and "did you mean 'training.n_epochs'" in err


def test_search_hands_its_options_on(run, monkeypatch, tmp_path):
    from cige.training.search import SearchResult, Trial

    given = {}

    def search(recipe, output, **options):
        given.update(options)
        trial = Trial({"batches.batch_size": 8}, 0.5, tmp_path)
        return SearchResult(trial, (trial,), tmp_path / "best.yaml")

    monkeypatch.setattr("cige.training.search.search", search)
    (tmp_path / "r.yaml").write_text("data:\n  dataset: weibo\n", encoding="utf-8")
    (tmp_path / "space.yaml").write_text("batches.batch_size: [8, 10]\n", encoding="utf-8")
    argv = ["search", tmp_path / "r.yaml", "-o", tmp_path, "--n-trials", "2", "--space", tmp_path / "space.yaml"]
    out = run(*argv, "--seeds", "1", "2")[1]
    assert "50.00  batches.batch_size=8" in out and "best.yaml" in out
    assert (given["n_trials"], given["seeds"], given["space"]) == (2, [1, 2], {"batches.batch_size": [8, 10]})


# ---- what is reported, and errors


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


def test_evaluate_lists_errors_and_tells_labels_that_are_wrong(run, model, data, tmp_path):
    argv = ["evaluate", "--model", model, "--data", data]
    mapped = ["--labels", "PER=ORG", "LOC=", "TITLE=PER"]
    code, out, err = run(*argv, *mapped, "--errors", tmp_path / "errors.jsonl", "--json")
    found = json.loads(out)
    assert code == 0 and "--labels names TITLE, which" in err
    lines = [json.loads(line) for line in (tmp_path / "errors.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(lines) == sum(found["errors"].values()) > 0
    assert {line["kind"] for line in lines} == {kind for kind, n in found["errors"].items() if n}
    assert found["confusion"]["ORG"]["PER"] == found["errors"]["wrong type"] > 0
    assert 0 <= found["calibration"]["expected_error"] <= 1
    code, _, err = run(*argv, "--labels", "PER=PERS")
    assert code == 2 and "the model has no label PERS, to which PER=PERS maps; it has LOC, ORG, PER" in err


@pytest.mark.parametrize("verb", VERBS)
def test_the_examples_of_the_help_can_be_parsed(verb):
    lines = (command_of(verb).__doc__ or "").replace("\\\n", " ").split("\n")
    for line in lines:
        if line.startswith("  cige "):
            words = shlex.split(re.split(r" [>|]+ ", line)[0], comments=True)
            assert words[1] in VERBS, line
            parser_of(words[1]).parse_args(words[2:])
