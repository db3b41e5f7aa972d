"""Folders of documents: which files are read, in which order, and what is no folder of one format."""

from __future__ import annotations

import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from labelled_text import HF, SPANS, TEXT

from cige.cli import main
from cige.data import read_sentences
from cige.data.documents import Document, read_documents, write_documents
from cige.data.documents.formats import find_format
from cige.data.sentence import Span
from cige.errors import DataError


def test_the_parts_of_a_folder_of_parquet_files_are_read_in_order(tmp_path):
    folder = tmp_path / "table"
    (folder / "year=2024").mkdir(parents=True)
    texts = ["在云南", "在北京", "在上海"]
    for name, text in zip(("part-0.parquet", "part-1.parquet", "year=2024/part-0.parquet"), texts, strict=True):
        write_documents(folder / name, [Document(text, (Span(1, 3, "LOC"),))])
    (folder / "_SUCCESS").touch()
    (folder / "_temporary").mkdir()
    write_documents(folder / "_temporary" / "part-9.parquet", [Document("没写完")])
    (folder / "readme.txt").write_text("不是文档", encoding="utf-8")
    assert find_format(folder) == "parquet"
    for format in ("auto", "parquet"):
        read = read_documents(folder, format=format)
        assert [d.text for d in read] == texts and all(d.spans == (Span(1, 3, "LOC"),) for d in read)
    assert main(["convert", str(folder), str(tmp_path / "all.jsonl")]) == 0
    assert [s.text for s in read_sentences(tmp_path / "all.jsonl")] == texts


def test_a_folder_of_tokens_and_tags_in_parquet_is_read_as_such(tmp_path):
    folder = tmp_path / "train"
    folder.mkdir()
    for number in range(2):
        pq.write_table(pa.Table.from_pylist([HF]), folder / f"train-{number}.parquet")
    assert find_format(folder) == "hugging-face"
    assert [d.spans for d in read_documents(folder)] == [SPANS, SPANS]


def test_a_brat_folder_may_hold_parquet_files_as_well(tmp_path):
    folder = tmp_path / "brat"
    write_documents(folder, [Document(TEXT, SPANS)], format="brat")
    write_documents(folder / "copy.parquet", [Document("别的")])
    assert [d.text for d in read_documents(folder)] == [TEXT]


def test_a_folder_without_documents_is_named(tmp_path):
    with pytest.raises(DataError, match=r"is a folder without documents; expected a file, .* in one format"):
        read_documents(tmp_path)
    with pytest.raises(DataError, match=r"is a folder without files of format parquet \(\.parquet\)"):
        read_documents(tmp_path, format="parquet")
    with pytest.raises(DataError, match=r"without files of format doccano \(\.jsonl, \.ndjson, \.json\)"):
        read_documents(tmp_path, format="doccano")


@pytest.mark.parametrize(
    ("format", "suffix"),
    [
        ("jsonl", ".jsonl"), ("jsonl", ".ndjson"), ("cluener", ".json"), ("doccano", ".jsonl"), ("csv", ".csv"),
        ("label-studio", ".json"), ("displacy", ".json"), ("tsv", ".tsv"), ("bmes", ".bmes"), ("conll", ".txt"),
    ],
)  # fmt: skip
def test_the_files_of_a_folder_are_read_in_order(tmp_path, format, suffix):
    folder = tmp_path / "parts"
    (folder / ".cache").mkdir(parents=True)
    own = [Document("张三去北京。", (Span(0, 2, "PER"), Span(3, 5, "LOC"))), Document("李四。", (Span(0, 2, "PER"),))]
    for number, document in enumerate(own):
        write_documents(folder / f"part-{number}{suffix}", [document], format=format)
    write_documents(folder / ".cache" / f"part-9{suffix}", own, format=format)
    (folder / f"part-empty{suffix}").touch()
    if suffix != ".txt":
        (folder / "readme.txt").write_text("不是文档", encoding="utf-8")
        assert [(d.text, d.spans) for d in read_documents(folder)] == [(d.text, d.spans) for d in own]
        assert [s.text for s in read_sentences(folder)] == [d.text for d in own]
    assert [d.text for d in read_documents(folder, format=format)] == [d.text for d in own]
    assert [s.spans for s in read_sentences(folder, format=format)] == [d.spans for d in own]


def test_a_folder_of_several_formats_is_told(tmp_path):
    for name in ("a.jsonl", "b.jsonl", "c.csv"):
        write_documents(tmp_path / name, [Document(TEXT, SPANS)])
    with pytest.raises(DataError, match=r"has files of several formats: csv \(1\), jsonl \(2\); give the format"):
        read_documents(tmp_path)
    assert len(read_documents(tmp_path, format="jsonl")) == 2 and len(read_documents(tmp_path, format="csv")) == 1


@pytest.mark.parametrize("format", ["txt", "csv"])
def test_what_annotate_wrote_is_read_without_rejected_rows(tmp_path, capsys, format):
    rows = ["text", "张桂梅在云南。", "小明去北京。", "长" * 50]
    (tmp_path / f"in.{format}").write_text("\n".join(rows[format == "txt" :]) + "\n", encoding="utf-8")
    options = ["--part-rows", "1", "--max-chars", "40"]
    assert main(["annotate", str(tmp_path / f"in.{format}"), str(tmp_path / "out"), *options]) == 0
    assert list((tmp_path / "out" / "rejected").iterdir())
    assert main(["convert", str(tmp_path / "out"), str(tmp_path / "all.bmes")]) == 0
    assert "2 documents" in capsys.readouterr().out


@pytest.mark.parametrize(
    "names", [("train.jsonl", "test.jsonl"), ("data/dev-0.csv", "data/train-0.csv"), ("val/0.bio", "test/0.bio")]
)
def test_several_splits_are_not_read_as_one(tmp_path, names):
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write_documents(tmp_path / name, [Document("张三。", (Span(0, 2, "PER"),))])
    with pytest.raises(DataError, match=r"several splits \((dev|test), (train|val)\), which .*; expected one of them"):
        read_documents(tmp_path)
    one = tmp_path / names[0]
    assert len(read_documents(one if one.parent == tmp_path else one.parent if "/0" in names[0] else one)) == 1


def test_the_format_of_every_file_counts(tmp_path):
    write_documents(tmp_path / "b.jsonl", [Document(TEXT, SPANS)], format="doccano")
    (tmp_path / "a.jsonl").write_text("\n", encoding="utf-8")
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b""))
    assert [d.spans for d in read_documents(tmp_path)] == [SPANS]
    write_documents(tmp_path / "c.JSON.GZ", [Document(TEXT, SPANS)], format="jsonl")
    with pytest.raises(DataError, match=r"several formats: doccano \(1\), jsonl \(1\); give the format"):
        read_documents(tmp_path)


def test_columns_in_txt_files_are_read_as_such(tmp_path):
    for name in ("a.txt", "b.txt"):
        write_documents(tmp_path / name, [Document("张三。", (Span(0, 2, "PER"),))], format="conll")
    assert find_format(tmp_path) == "conll"
    assert [s.spans for s in read_sentences(tmp_path)] == [(Span(0, 2, "PER"),)] * 2
    (tmp_path / "notes.txt").write_text("一段没有标注的文字", encoding="utf-8")
    assert find_format(tmp_path) == "brat"


def test_hidden_files_of_a_brat_folder_are_not_read(tmp_path):
    write_documents(tmp_path / "brat", [Document(TEXT, SPANS)], format="brat")
    (tmp_path / "brat" / ".checkpoints").mkdir()
    for name in ("._000001.txt", ".checkpoints/000001.txt"):
        (tmp_path / "brat" / name).write_text("别的", encoding="utf-8")
    assert [d.text for d in read_documents(tmp_path / "brat")] == [TEXT]
