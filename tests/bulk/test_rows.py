"""Every input row is in the output or among the rejected ones, whatever its file is and wherever parts are cut."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
from dataclasses import replace

import bulk_jobs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bulk_jobs import output_rows, rejected_rows

from cige.bulk.job import Job
from cige.cli import main
from cige.errors import DataError

TEXTS = ["张桂梅在云南华坪创办女子高中", "", '他说“好”, "行"\n下一行在上海', "😀𠮷北京"]


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_lines_of_text(tmp_path, name):
    raw = "\ufeff张桂梅在云南\r\n\n".encode() + b"\xff\xfe bad\n" + "北京\u2028上海".encode()
    (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith("gz") else raw)
    totals = bulk_jobs.done(bulk_jobs.plan(tmp_path / name, tmp_path / "out", part_rows=1))
    assert totals == {"rows": 3, "rejected": 1, "entities": totals["entities"]}
    rows = output_rows(tmp_path / "out")
    assert [row["text"] for row in rows] == ["张桂梅在云南", "", "北京\u2028上海"]
    assert [e["text"] for e in rows[0]["entities"]] == ["张桂梅", "云南"]
    (bad,) = rejected_rows(tmp_path / "out")
    assert bad["row"] == 3 and bad["reason"] == "byte 0xff at column 1 is not UTF-8"
    assert bad["raw"].encode("utf-8", "surrogateescape") == b"\xff\xfe bad"


def test_json_lines_keep_their_keys(tmp_path):
    lines = ['{"id": 1, "body": "张桂梅在云南"}', "", "{broken", "[1]", '{"id": 2}', '{"body": 3}', '{"body": null}']
    lines += ['{"body": "\\ud800北京", "x": null}', '{"body": "a", "entities": []}']
    (tmp_path / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    totals = bulk_jobs.done(bulk_jobs.plan(tmp_path / "a.jsonl", tmp_path / "out", text_column="body", part_rows=4))
    assert (totals["rows"], totals["rejected"]) == (2, 6)
    rows = output_rows(tmp_path / "out")
    assert rows[0]["id"] == 1 and len(rows[0]["entities"]) == 2
    assert rows[1]["body"] == "\ud800北京" and rows[1]["entities"][0]["start"] == 1 and rows[1]["x"] is None
    reasons = {row["row"]: row["reason"].partition("(")[0].strip() for row in rejected_rows(tmp_path / "out")}
    assert reasons == {
        3: "not JSON",
        4: "expected an object, found list",
        5: "no 'body' in it; it has 'id'",
        6: "the text is int, expected a string",
        7: "no text",
        9: "it has a value under 'entities' already; give another name by --entities-column",
    }


@pytest.mark.parametrize("to", ["csv", "jsonl", "parquet"])
def test_csv_records_may_have_line_breaks(tmp_path, to):
    out = io.StringIO(newline="")
    csv.writer(out).writerows([["id", "text"], *enumerate(TEXTS)])
    raw = out.getvalue() + 'x,y,z\r\n5,"never closed\n'
    (tmp_path / "a.csv").write_text(raw, encoding="utf-8", newline="")
    totals = bulk_jobs.done(bulk_jobs.plan(tmp_path / "a.csv", tmp_path / "out", part_rows=2, to=to))
    assert (totals["rows"], totals["rejected"]) == (4, 2)
    rejected = rejected_rows(tmp_path / "out")
    assert [row["file"] for row in rejected] == ["a.csv"] * 2
    assert [row["reason"] for row in rejected] == [
        "3 fields, expected 2: id, text",
        "a quote in it is never closed, so it extends to the end of the file",
    ]
    assert rejected[1]["raw"] == ["5", "never closed\n"]
    if to == "jsonl":
        found = output_rows(tmp_path / "out")
    elif to == "csv":
        files = sorted((tmp_path / "out" / "data").iterdir())
        texts = [io.StringIO(f.read_bytes().decode(), newline="") for f in files]
        found = [row for text in texts for row in csv.DictReader(text)]
        found = [row | {"entities": json.loads(row["entities"])} for row in found]
    else:
        found = pq.read_table(tmp_path / "out" / "data").to_pylist()
    assert [row["text"] for row in found] == TEXTS
    assert [row["id"] for row in found] == ["0", "1", "2", "3"]
    for row in found:
        assert all(row["text"][e["start"] : e["end"]] == e["text"] for e in row["entities"])
    assert found[0]["entities"][0]["label"] == "PER"


def test_tsv_fields_are_taken_as_they_are(tmp_path):
    (tmp_path / "a.tsv").write_text('text\tid\n"张桂梅在云南\t1\n北京"\t2\n', encoding="utf-8")
    bulk_jobs.done(bulk_jobs.plan(tmp_path / "a.tsv", tmp_path / "out"))
    (file,) = (tmp_path / "out" / "data").iterdir()
    lines = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()]
    assert lines[0] == ["text", "id", "source_file", "source_row", "entities"]
    assert [line[0] for line in lines[1:]] == ['"张桂梅在云南', '北京"']
    assert [line[2:4] for line in lines[1:]] == [["a.tsv", "1"], ["a.tsv", "2"]]
    assert [e["text"] for e in json.loads(lines[1][4])] == ["张桂梅", "云南"]


def test_parquet_keeps_its_columns(tmp_path):
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    table = pa.table({"text": [*TEXTS, None], "when": pa.array(range(5), pa.timestamp("ms")), "raw": [b"\xff"] * 5})
    pq.write_table(table, folder / "b.parquet", row_group_size=2)
    pq.write_table(table.slice(0, 1), folder / "sub" / "a.parquet")
    totals = bulk_jobs.done(bulk_jobs.plan(folder, tmp_path / "out", part_rows=3))
    assert (totals["rows"], totals["rejected"]) == (5, 1)
    found = pq.read_table(tmp_path / "out" / "data")
    assert found.column("source_file").to_pylist() == ["b.parquet"] * 4 + ["sub/a.parquet"]
    assert found.column("source_row").to_pylist() == [1, 2, 3, 4, 1]
    assert found.column_names[-3:] == ["source_file", "source_row", "entities"]
    assert found.drop(["source_file", "source_row", "entities"]) == pa.concat_tables(
        [table.slice(0, 4), table.slice(0, 1)]
    )
    assert "list<element: struct<start: int32 not null" in str(found.schema.field("entities").type)
    assert rejected_rows(tmp_path / "out")[0]["reason"] == "no text"


def test_a_job_of_an_older_version_keeps_the_schema_of_its_parquet_files(tmp_path):
    (tmp_path / "a.txt").write_text("北京\n上海\n南京\n", encoding="utf-8")

    def planned() -> Job:
        return bulk_jobs.plan(tmp_path / "a.txt", tmp_path / "out", to="parquet", part_rows=1)

    def fields_of(number: int) -> list[str]:
        file = tmp_path / "out" / "data" / f"part-00000{number}.parquet"
        return [field.name for field in pq.read_schema(file).field("entities").type.value_type]

    older = ["start", "end", "label", "text", "score"]
    begun = planned()
    assert not begun.begin()
    replace(begun, entity_fields=tuple(older)).annotate(bulk_jobs.annotator(), begun.parts[0])
    manifest = tmp_path / "out" / "manifest.json"
    facts = json.loads(manifest.read_text(encoding="utf-8"))
    assert facts.pop("entity_fields") == [*older, "forced", "parts"]
    manifest.write_text(json.dumps(facts), encoding="utf-8")
    assert bulk_jobs.done(planned())["rows"] == 3
    assert [fields_of(number) for number in range(3)] == [older] * 3
    assert bulk_jobs.done(planned())["rows"] == 3
    facts = json.loads(manifest.read_text(encoding="utf-8"))
    for fields in ([*older, "of a newer version"], [], 5):
        manifest.write_text(json.dumps(facts | {"entity_fields": fields}), encoding="utf-8")
        with pytest.raises(DataError, match=rf"entity_fields was {re.escape(repr(fields))}, now .*give a new folder"):
            planned().begin()


@pytest.mark.parametrize(
    ("kind", "texts", "n_kept"),
    [
        (pa.string_view(), ["王小明在北京", None, "张三", "李四"], 3),
        (pa.string_view(), ["王小明在北京"], 1),
        (pa.null(), [None, None], 0),
        (pa.binary(), ["王小明".encode(), None], 0),
    ],
)
def test_parquet_rows_of_any_type_may_be_rejected(tmp_path, kind, texts, n_kept):
    table = pa.table({"text": pa.array(texts, kind), "k": pa.array(["x"] * len(texts), pa.string_view())})
    pq.write_table(table, tmp_path / "a.parquet")
    totals = bulk_jobs.done(bulk_jobs.plan(tmp_path / "a.parquet", tmp_path / "out"))
    assert (totals["rows"], totals["rejected"]) == (n_kept, len(texts) - n_kept)
    found = pq.read_table(tmp_path / "out" / "data").column("text").to_pylist()
    assert found == [text for text in texts if isinstance(text, str)]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([10_000_000, None], pa.int32()).cast(pa.date32()),  # a day in the year 29349
        pa.array([10**18, None], pa.duration("ms")),
        pa.array([1, None], pa.timestamp("us", "No/Zone")),
    ],
    ids=["day", "duration", "zone"],
)
def test_values_that_python_has_no_object_for_are_kept_in_parquet_and_rejected_in_json(tmp_path, values):
    table = pa.table({"text": ["王小明在北京", None], "k": values})
    pq.write_table(table, tmp_path / "a.parquet")
    totals = bulk_jobs.done(bulk_jobs.plan(tmp_path / "a.parquet", tmp_path / "out"))
    assert (totals["rows"], totals["rejected"]) == (1, 1)
    (file,) = (tmp_path / "out" / "data").iterdir()
    assert pq.read_table(file).select(["text", "k"]) == table.slice(0, 1)
    bulk_jobs.done(bulk_jobs.plan(tmp_path / "a.parquet", tmp_path / "json", to="jsonl"))
    assert "JSON cannot hold it" in rejected_rows(tmp_path / "json")[0]["reason"]


def test_a_csv_quote_within_a_field_is_a_character(tmp_path):
    (tmp_path / "a.csv").write_text('id,text\n1,北京的5" 屏幕\n', encoding="utf-8")
    assert bulk_jobs.done(bulk_jobs.plan(tmp_path / "a.csv", tmp_path / "out"))["rows"] == 1


def test_output_inside_the_input_folder_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text("北京", encoding="utf-8")
    with pytest.raises(DataError, match="inside the input folder"):
        bulk_jobs.plan(tmp_path, tmp_path / "out")


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    def refused(name: str, raw: bytes, **options) -> str:
        (tmp_path / name).write_bytes(raw)
        with pytest.raises(DataError) as error:
            bulk_jobs.plan(tmp_path / name, tmp_path / "out", **options)
        return str(error.value)

    assert "UTF-16" in refused("a.txt", "北京".encode("utf-16"))
    assert "expected a name that ends in .txt" in refused("a.doc", b"")
    assert "no header" in refused("a.csv", b"")
    assert "no column 'text'; it has a, b" in refused("b.csv", b"a,b\n1,2\n")
    table = io.BytesIO()
    pq.write_table(pa.table({"body": ["北京"], "id": [1]}), table)
    assert "no column 'text'; it has body, id; name one" in refused("b.parquet", table.getvalue())
    assert "two columns have the same name" in refused("c.csv", b"text,text\n")
    twice = io.BytesIO()
    pq.write_table(pa.table([pa.array(["北京"]), pa.array([1]), pa.array([2])], names=["text", "a", "a"]), twice)
    assert "two columns have the same name in text, a, a" in refused("c.parquet", twice.getvalue())
    assert "not a Parquet file" in refused("a.parquet", b"nothing")
    assert "damaged or cut short" in refused("a.txt.gz", gzip.compress(b"x" * 1000)[:20])
    assert "jsonl can be written as jsonl" in refused("a.jsonl", b"{}", to="csv")
    with pytest.raises(DataError, match="no such file"):
        bulk_jobs.plan(tmp_path / "none.txt", tmp_path / "out")
    with pytest.raises(DataError, match="holds files of formats"):
        bulk_jobs.plan(tmp_path, tmp_path.parent / "out of it")


def test_an_empty_file_has_no_parts(tmp_path):
    (tmp_path / "a.txt").write_text("")
    assert bulk_jobs.done(bulk_jobs.plan(tmp_path / "a.txt", tmp_path / "out")) == {
        "rows": 0,
        "rejected": 0,
        "entities": 0,
    }


def test_hidden_files_of_a_folder_are_not_annotated(tmp_path):
    folder = tmp_path / "in"
    (folder / "_temporary").mkdir(parents=True)
    for name in ("_temporary/a.txt", ".b.txt"):
        (folder / name).write_text("没写完\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"no file in it whose name ends in \.txt.*begin with _ or \. are ignored"):
        bulk_jobs.plan(folder, tmp_path / "out")
    (folder / "c.txt").write_text("张桂梅在云南。\n", encoding="utf-8")
    assert bulk_jobs.done(bulk_jobs.plan(folder, tmp_path / "out"))["rows"] == 1


# ---- where rows are from


def test_rows_hold_their_file_and_line(tmp_path):
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.jsonl").write_text('{"text": "北京"}\n\n{"text": 1}\n{"text": "上海"}\n', encoding="utf-8")
    (folder / "sub" / "b.jsonl").write_text('{"text": "南京"}\n', encoding="utf-8")
    bulk_jobs.done(bulk_jobs.plan(folder, tmp_path / "out"))
    found = [(row["source_file"], row["source_row"], row["text"]) for row in output_rows(tmp_path / "out")]
    assert found == [("a.jsonl", 1, "北京"), ("a.jsonl", 4, "上海"), ("sub/b.jsonl", 1, "南京")]
    assert [(row["file"], row["row"]) for row in rejected_rows(tmp_path / "out")] == [("a.jsonl", 3)]


@pytest.mark.parametrize("to", ["jsonl", "csv", "tsv", "parquet"])
def test_where_rows_are_from_can_be_left_out(tmp_path, to):
    (tmp_path / "a.txt").write_text("北京\n", encoding="utf-8")
    for with_source in (True, False):
        output = tmp_path / f"out {with_source}"
        bulk_jobs.done(bulk_jobs.plan(tmp_path / "a.txt", output, to=to, with_source=with_source))
        (file,) = (output / "data").iterdir()
        if to == "parquet":
            names = pq.read_table(file).column_names
        else:
            first = file.read_text(encoding="utf-8").splitlines()[0]
            names = list(json.loads(first)) if to == "jsonl" else first.split("," if to == "csv" else "\t")
        assert names == ["text", *(["source_file", "source_row"] if with_source else []), "entities"]


def test_the_command_leaves_out_where_rows_are_from(tmp_path):
    (tmp_path / "a.txt").write_text("北京\n", encoding="utf-8")
    assert main(["annotate", str(tmp_path / "a.txt"), str(tmp_path / "out"), "--processes", "1"]) == 0
    assert output_rows(tmp_path / "out")[0]["source_file"] == "a.txt"
    assert main(["annotate", str(tmp_path / "a.txt"), str(tmp_path / "b"), "--processes", "1", "--no-source"]) == 0
    assert set(output_rows(tmp_path / "b")[0]) == {"text", "entities"}


def test_names_that_are_there_already_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text("text,source_row\n北京,7\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"value under 'source_row' already; rename it, or give --no-source"):
        bulk_jobs.plan(tmp_path / "a.csv", tmp_path / "out")
    bulk_jobs.done(bulk_jobs.plan(tmp_path / "a.csv", tmp_path / "out", to="jsonl", with_source=False))
    assert output_rows(tmp_path / "out")[0]["source_row"] == "7"
    (tmp_path / "a.jsonl").write_text('{"text": "北京", "source_file": 1}\n{"text": "北京"}\n', encoding="utf-8")
    assert bulk_jobs.done(bulk_jobs.plan(tmp_path / "a.jsonl", tmp_path / "other"))["rows"] == 1
    assert "'source_file' already" in rejected_rows(tmp_path / "other")[0]["reason"]


def test_a_file_name_that_tsv_cannot_hold(tmp_path):
    path = tmp_path / "a\tb.tsv"
    path.write_text("text\n北京\n", encoding="utf-8")
    bulk_jobs.done(bulk_jobs.plan(path, tmp_path / "out"))
    (file,) = (tmp_path / "out" / "data").iterdir()
    assert file.read_text(encoding="utf-8").splitlines()[1].split("\t")[1] == "a b.tsv"


def test_a_file_name_that_is_not_utf8(tmp_path):
    folder, name = tmp_path / "in", os.fsdecode("新闻.txt".encode("gb18030"))
    folder.mkdir()
    (folder / name).write_text("李娜在武汉\n", encoding="utf-8")
    for totals in [bulk_jobs.done(bulk_jobs.plan(folder, tmp_path / "out")) for _ in range(2)]:  # the second goes on
        assert (totals["rows"], totals["entities"]) == (1, 2)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert [file["name"] for file in manifest["input"]] == [name]
    (row,) = output_rows(tmp_path / "out")
    assert row["source_file"] == "\ufffd\ufffd\ufffd\ufffd.txt"


def test_a_link_to_nothing_is_refused(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_text("北京", encoding="utf-8")
    for name in ("b.txt", "_hidden.txt", "notes.md", "c.csv"):
        (folder / name).symlink_to(tmp_path / "none" / name)
    with pytest.raises(DataError, match=r"b\.txt: a link to a file that is not there"):
        bulk_jobs.plan(folder, tmp_path / "out", form="txt")
    (folder / "b.txt").unlink()
    assert [file.name for file in bulk_jobs.plan(folder, tmp_path / "out", form="txt").files] == ["a.txt"]
    with pytest.raises(DataError, match=r"c\.csv: a link"):
        bulk_jobs.plan(folder, tmp_path / "out")


def test_a_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "a.txt")
    with pytest.raises(DataError, match="a pipe or device; expected a file"):
        bulk_jobs.plan(tmp_path / "a.txt", tmp_path / "out")


def test_a_job_of_an_older_version_goes_on_without_sources(tmp_path):
    (tmp_path / "a.txt").write_text("北京\n", encoding="utf-8")
    job = bulk_jobs.plan(tmp_path / "a.txt", tmp_path / "out", with_source=False)
    job.begin()
    manifest = tmp_path / "out" / "manifest.json"
    facts = json.loads(manifest.read_text(encoding="utf-8"))
    del facts["with_source"]
    manifest.write_text(json.dumps(facts), encoding="utf-8")
    with pytest.raises(DataError, match="with_source was False, now True"):
        bulk_jobs.plan(tmp_path / "a.txt", tmp_path / "out").begin()
    assert job.begin()


# ---- numbers


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        ("NaN", "NaN is not JSON; leave the value out, or write null or a string"),
        ("Infinity", "Infinity is not JSON; leave the value out, or write null or a string"),
        ("-Infinity", "-Infinity is not JSON; leave the value out, or write null or a string"),
        ("1e999", "the number 1e999 is too large for a float of 64 bits; write it as a string"),
        ("-1e999", "the number -1e999 is too large for a float of 64 bits; write it as a string"),
    ],
)
def test_a_number_that_would_become_null_is_told(tmp_path, number, reason):
    line = '{"text": "北京", "x": {"y": [1.5, %s]}}'
    (tmp_path / "a.jsonl").write_text(f"{line % number}\n{line % '1e300'}\n", encoding="utf-8")
    assert bulk_jobs.done(bulk_jobs.plan(tmp_path / "a.jsonl", tmp_path / "out"))["rejected"] == 1
    (rejected,) = rejected_rows(tmp_path / "out")
    assert rejected["reason"] == reason and rejected["raw"] == line % number
    assert output_rows(tmp_path / "out")[0]["x"] == {"y": [1.5, 1e300]}
