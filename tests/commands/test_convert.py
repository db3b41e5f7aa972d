"""`cige convert`: from one format to another, repairs, and entities with gaps."""

from __future__ import annotations

import json

import pytest
from labelled_text import SPANS, TEXT

from cige.cli import main
from cige.data import read_sentences, write_sentences
from cige.data.documents import Document, read_documents, write_documents
from cige.data.documents.formats import written
from cige.data.sentence import Sentence, Span
from cige.errors import DataError


def test_the_command(tmp_path, capsys):
    source = tmp_path / "a.jsonl"
    write_sentences(source, [Sentence(TEXT, SPANS)])
    assert main(["convert", str(source), str(tmp_path / "t.json"), "--to", "label-studio"]) == 0
    assert "1 document with 2 entities" in capsys.readouterr().out
    assert main(["convert", str(tmp_path / "t.json"), str(tmp_path / "b.bmes")]) == 0
    assert read_sentences(tmp_path / "b.bmes") == [Sentence(TEXT, SPANS, 1)]
    write_sentences(tmp_path / "c.csv", [Sentence(TEXT, SPANS)])
    assert read_sentences(tmp_path / "c.csv")[0].spans == SPANS
    assert main(["convert", str(source), str(tmp_path / "x.unknown")]) == 2
    said = capsys.readouterr().err
    assert "cannot tell the format from the name" in said and "name it by --to" in said


def test_what_entities_lose_is_told(tmp_path, capsys):
    source = tmp_path / "found.jsonl"
    entity = {"start": 0, "end": 2, "label": "LOC", "text": "北京", "score": 0.9}
    source.write_text(json.dumps({"text": "北京大学", "entities": [entity]}) + "\n", encoding="utf-8")
    table = tmp_path / "found.csv"
    table.write_text(
        'text,entities\n北京大学,"[{""start"":0,""end"":2,""label"":""LOC"",""forced"":true}]"\n', encoding="utf-8"
    )
    for given, key in ((source, "score"), (table, "forced")):
        assert main(["convert", str(given), str(tmp_path / "tasks.json"), "--to", "label-studio"]) == 0
        assert f"entities are written without their {key}, so keep INPUT" in capsys.readouterr().err
    del entity["score"]
    source.write_text(
        json.dumps({"text": "北京大学", "entities": [entity | {"forced": False}]}) + "\n", encoding="utf-8"
    )
    assert main(["convert", str(source), str(tmp_path / "tasks.json"), "--to", "label-studio"]) == 0
    assert not capsys.readouterr().err


def test_repairs_of_the_command_are_told(tmp_path, capsys):
    source, tags = tmp_path / "a.jsonl", tmp_path / "a.bio"
    write_documents(source, [Document("北京大学在哪", (Span(0, 2, "LOC"), Span(0, 4, "ORG")))])
    assert main(["convert", str(source), str(tags)]) == 2
    assert main(["convert", str(source), str(tags), "--repair"]) == 0
    assert "a.jsonl, line 1: repaired: LOC '北京' at [0, 2) overlapped a longer entity" in capsys.readouterr().err
    assert read_sentences(tags)[0].spans == (Span(0, 4, "ORG"),)
    write_sentences(source, [Sentence("在", ()), Sentence("北京大学", (Span(0, 2, "LOC"), Span(0, 4, "ORG")))])
    for form in ("cluener", "brat"):  # where a line has a number, and where a document has one
        assert main(["convert", str(source), str(tmp_path / form), "--to", form]) == 0
        capsys.readouterr()
        assert main(["convert", str(tmp_path / form), str(tags), "--repair", "--from", form, "--to", "bio"]) == 0
        assert f"{form}, line 2: repaired: LOC '北京' at [0, 2) overlapped" in capsys.readouterr().err
    tags.write_text("北 I-LOC\n京 I-LOC\n", encoding="utf-8")
    assert main(["convert", str(tags), str(source), "--repair"]) == 0
    assert "a.bio: 1 place(s) repaired, the first on line 1: I-LOC must follow" in capsys.readouterr().err
    assert read_sentences(source)[0].spans == (Span(0, 2, "LOC"),)


def test_an_entity_with_a_gap_keeps_its_parts(tmp_path, capsys):
    text, spans = "第一和口腔医院", (Span(0, 7, "ORG", ((0, 2), (5, 7))), Span(3, 7, "ORG"))
    source, same, table = tmp_path / "a.jsonl", tmp_path / "b.jsonl", tmp_path / "c.csv"
    write_sentences(source, [Sentence(text, spans)])
    assert main(["convert", str(source), str(same)]) == 0
    assert same.read_bytes() == source.read_bytes()
    for output, format in (("d", "doccano"), ("e", "label-studio"), ("f", "displacy"), ("g", "cluener")):
        assert main(["convert", str(source), str(tmp_path / output), "--to", format]) == 2
        assert not (tmp_path / output).exists()
        said = capsys.readouterr().err
        assert "number 1: ORG '第一医院' at [0, 2), [5, 7) is discontinuous, which only" in said
    for output in (table, tmp_path / "c.tsv", tmp_path / "c.parquet", tmp_path / "brat"):
        assert main(["convert", str(source), str(output), *(["--to", "brat"] if output.name == "brat" else [])]) == 0
        assert read_documents(output)[0].spans == spans == read_sentences(output, nested=True)[0].spans
    with pytest.raises(DataError, match=r"line 1: .*discontinuous; only `head: pair_grid`"):
        read_sentences(table, repair=True)


def test_repairs_keep_an_entity_in_the_gap_of_another(tmp_path, capsys):
    text = "第一和口腔医院"
    gapped, within = Span(0, 7, "ORG", ((0, 2), (5, 7))), Span(3, 5, "SITE")
    source, repaired = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    write_sentences(source, [Sentence(text, (gapped, within, Span(3, 7, "ORG")))])
    assert main(["convert", str(source), str(repaired), "--repair"]) == 0
    assert "1: repaired: ORG '口腔医院' at [3, 7) overlapped a longer entity" in capsys.readouterr().err
    assert read_sentences(repaired, nested=True)[0].spans == (gapped, within)


def test_repairs_keep_the_entity_with_more_characters_of_its_own(tmp_path, capsys):
    text, long = "甲乙丙丁戊己庚辛壬癸子", Span(0, 10, "LONG")
    source, repaired = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    write_sentences(source, [Sentence(text, (Span(0, 11, "A", ((0, 1), (10, 11))), long))])
    assert main(["convert", str(source), str(repaired), "--repair"]) == 0
    assert "1: repaired: A '甲子' at [0, 1), [10, 11) overlapped a longer entity" in capsys.readouterr().err
    assert read_sentences(repaired, nested=True)[0].spans == (long,)


def test_what_nobody_has_labelled_is_told_where_the_new_file_cannot(tmp_path, capsys):
    """`cige train` leaves such tasks out, but not what is made of them."""
    source = tmp_path / "tasks.json"
    documents = [
        Document("张桂梅在云南", (Span(0, 3, "PER"),)),
        Document("李明来了", is_labelled=False),
        Document("王芳来了", (Span(0, 2, "PER"),), is_suggested=True),
    ]
    write_documents(source, documents, format="label-studio")
    assert len(read_sentences(source)) == 1
    told = {}
    for format in written():
        assert main(["convert", str(source), str(tmp_path / format), "--to", format]) == 0
        told[format] = capsys.readouterr().err
        again = read_documents(tmp_path / format, format=format)
        assert ("1 unlabelled text is written as without entities" in told[format]) == all(d.is_labelled for d in again)
        assert ("1 text has a model's predictions" in told[format]) == (not any(d.is_suggested for d in again))
    assert told["label-studio"] == "" and told["bmes"].count("\n") == 2 and told["jsonl"].count("\n") == 1
