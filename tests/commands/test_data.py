"""`cige data`: statistics, and conversion of nested entities and of what must be repaired."""

import json

import tiny

from cige.data import Sentence, Span, read_sentences, write_sentences


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


def test_brackets_in_names_and_labels_are_shown_as_they_are(run, model, tmp_path):
    path = tmp_path / ("数据" * 40) / "a[b].jsonl"  # wider than the tables
    path.parent.mkdir()
    write_sentences(path, [Sentence("李明在北京。", (Span(0, 2, "P[b]"), Span(3, 5, "LOC[/b]")))])
    code, out, err = run("data", "stats", path)
    assert code == 0 and f"{path}\n" in out and "LOC[/b]" in out, err
    code, out, err = run("evaluate", "--model", model, "--data", path, "--labels", "P[b]=PER", "LOC[/b]=LOC")
    assert code == 0 and f"{path}\n" in out, err
