"""`cige evaluate`: scores, errors, and labels that are mapped."""

import json

import tiny
import tiny_grid

from cige.data import Sentence, Span, write_sentences


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


def test_entities_with_gaps_are_scored_without_repair(run, tmp_path):
    tiny_grid.model().save(tmp_path / "model")
    gapped = Span(0, 5, "ORG", ((0, 1), (3, 5)))
    write_sentences(tmp_path / "gapped.jsonl", [Sentence("李明在北京。", (gapped,))])
    argv = ["evaluate", "--model", tmp_path / "model", "--data", tmp_path / "gapped.jsonl", "--json"]
    code, _, err = run(*argv, "--repair")
    assert code == 2 and "is discontinuous, which --repair leaves no room for; leave out --repair" in err
    assert run(*argv)[0] == 0


def test_a_type_that_the_data_never_has_is_told(run, model, tmp_path):
    write_sentences(tmp_path / "per.bmes", [Sentence("李明在北京。", (Span(0, 2, "PER"),))])
    _, out, err = run("evaluate", "--model", model, "--data", tmp_path / "per.bmes", "--json")
    assert json.loads(out)["precision"] == 0.5
    assert "no entity of" in err and "LOC or ORG" in err


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


def test_errors_in_texts_with_lone_surrogates_are_written_escaped(run, model, tmp_path):
    labelled, errors = tmp_path / "odd.jsonl", tmp_path / "errors.jsonl"
    labelled.write_text('{"text": "\\ud83d好", "entities": [{"start": 1, "end": 2, "label": "PER"}]}', encoding="utf-8")
    code, _, err = run("evaluate", "--model", model, "--data", labelled, "--errors", errors)
    assert code == 0, err
    assert json.loads(errors.read_text(encoding="utf-8").splitlines()[0])["text"] == "\ud83d好"


def test_labels_of_words_of_your_own_are_scored(run, model, tmp_path):
    write_sentences(tmp_path / "plants.jsonl", [Sentence("李明种贺兰草", (Span(3, 6, "PLANT"),))])
    (tmp_path / "words.txt").write_text("贺兰草\tPLANT\tforce\n", encoding="utf-8")
    argv = ["--model", model, "--data", tmp_path / "plants.jsonl"]
    code, out, _ = run("evaluate", *argv, "--lexicon-add", tmp_path / "words.txt", "--data-labels-only", "--json")
    assert code == 0 and json.loads(out)["f1"] == 1.0
    code, _, err = run("evaluate", *argv)
    assert code == 2 and "no label of the model for PLANT" in err
    code, out, _ = run("user-words", *argv, "--gazetteer", tmp_path / "words.txt", "--json")
    assert code == 0 and {trial["words"]: trial["f1"] for trial in json.loads(out)}["none"] == 0.0
