"""Records of CSV files are the same in whatever parts a file is cut."""

from __future__ import annotations

import csv
import io

import bulk_jobs
import pytest
from bulk_jobs import output_rows, rejected_rows
from hypothesis import given, settings
from hypothesis import strategies as st

from cige.bulk import inputs
from cige.bulk.inputs import Part, scan
from cige.bulk.rows import read_rows
from cige.data.documents.tables import csv_records

FIELDS = st.text(st.sampled_from('a,"\n\r中😀 '), max_size=6)


@settings(max_examples=60)
@given(st.lists(st.tuples(FIELDS, FIELDS), max_size=12), st.integers(1, 5), st.sampled_from(["\n", "\r\n"]))
def test_parts_of_csv_together_are_the_records(tmp_path_factory, records, piece_rows, line_end):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator=line_end, quoting=csv.QUOTE_ALL).writerows([("a", "text"), *records])
    path.write_text(out.getvalue(), encoding="utf-8", newline="")
    file, pieces = scan(path, "", "csv", piece_rows)
    assert file.n_rows == len(records) == sum(n for _, n in pieces)
    start, found = file.begin, []
    for end, n in pieces:
        found += read_rows(path, file, Part(0, "", start, end, 1, n), "csv", "text")
        start = end
    assert [tuple(row.values.values()) for row in found] == records


@settings(max_examples=200)
@given(st.text(st.sampled_from('a,"\n\r中'), max_size=30), st.integers(1, 7), st.integers(1, 3), st.booleans())
def test_parts_of_any_csv_have_the_records_of_the_whole(tmp_path_factory, text, block, piece_rows, has_bom):
    """Records with quotes within a field, and with any line ends, in files that are read in blocks of a few bytes."""
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    raw = f"{chr(0xFEFF) * has_bom}a,text\r\n{text}"
    path.write_text(raw, encoding="utf-8", newline="")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(inputs, "_BLOCK", block)
        file, pieces = scan(path, "", "csv", piece_rows)
    expected = csv_records(text, "csv")
    assert file.n_rows == len(expected) == sum(n for _, n in pieces)
    start, found = file.begin, []
    for end, n in pieces:
        records = csv_records(path.read_bytes()[start:end].decode(), "csv")
        assert len(records) == n
        found += records
        start = end
    assert found == expected


def test_a_quote_within_a_field_hides_no_line_end(tmp_path):
    raw = 'id,text\n1,15" 屏幕\n2,"李娜\n在武汉"\n3,16" 屏幕\n4,张三在北京\n5,"王五\n在上海"\n'
    (tmp_path / "a.csv").write_text(raw, encoding="utf-8")
    totals = bulk_jobs.done(bulk_jobs.plan(tmp_path / "a.csv", tmp_path / "out", part_rows=1, to="jsonl"))
    rows = [(row["source_row"], row["id"], row["text"]) for row in output_rows(tmp_path / "out")]
    texts = ['15" 屏幕', "李娜\n在武汉", '16" 屏幕', "张三在北京", "王五\n在上海"]
    assert rows == [(k, str(k), text) for k, text in enumerate(texts, 1)]
    assert totals["rejected"] == 0


@pytest.mark.parametrize("before", ['1,15" 屏幕', '1,"李娜"在武汉', "1,李娜"])
def test_a_quote_that_is_never_closed_is_told_after_other_quotes(tmp_path, before):
    (tmp_path / "a.csv").write_text(f'id,text\n{before}\n2,"张三在北京\n3,王五在上海\n', encoding="utf-8")
    totals = bulk_jobs.done(bulk_jobs.plan(tmp_path / "a.csv", tmp_path / "out", to="jsonl"))
    assert (totals["rows"], totals["rejected"]) == (1, 1)
    (bad,) = rejected_rows(tmp_path / "out")
    assert bad["row"] == 2 and "never closed" in bad["reason"] and bad["raw"][1] == "张三在北京\n3,王五在上海\n"


def test_records_may_end_with_carriage_returns_alone(tmp_path):
    (tmp_path / "a.csv").write_text("id,text\r1,李娜在武汉\r2,张三在北京\r", encoding="utf-8", newline="")
    bulk_jobs.done(bulk_jobs.plan(tmp_path / "a.csv", tmp_path / "out", part_rows=1, to="jsonl"))
    assert [row["text"] for row in output_rows(tmp_path / "out")] == ["李娜在武汉", "张三在北京"]
