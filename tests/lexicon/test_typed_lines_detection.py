"""How the format of a word list is detected, and that any file is read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cige.lexicon.typed_lines import detect_typed
from cige.lexicon.words_file import read_words


@pytest.mark.parametrize(
    ("lines", "format"),
    [
        (["贺兰草,PRODUCT"], "csv"),
        (["贺兰草,产品", "沙葱,产品"], "csv"),
        (["红,黑"], None),
        (["红,黑", "长,短"], None),
        (["贺兰草", "沙葱,PRODUCT", "苁蓉"], None),
        (["word,label", "红"], "csv"),
        (["word", "label"], None),
        (["贺兰草\t产品", "沙葱"], "labels"),
        (["贺兰草\t产品", "沙葱", "苁蓉"], "labels"),
        (["贺兰草\t12", "沙葱", "苁蓉\t3\tn"], None),
        (["贺兰草\t12", "沙葱\t产品"], "labels"),
        (['{"word": "贺兰草"}'], "jsonl"),
        (["{贺兰草}"], None),
        ([], None),
    ],
)
def test_detection(lines, format):
    assert detect_typed([line.encode() for line in lines]) == format


@given(st.binary(max_size=60), st.sampled_from(["auto", "labels", "csv", "jsonl"]))
def test_any_file_is_read_and_every_line_accounted_for(tmp_path_factory, data, format):
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes("沙\n".encode() + data + "\n贺兰草\n沙葱\n苁蓉\n".encode() * 30)
    report = read_words(path, format=format, spaces=True).report
    lines = [line for line in path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip()]
    is_header = report.format in ("labels", "csv") and report.n_taken + report.n_refused + report.n_comments < len(
        lines
    )
    n_told = report.n_taken + report.n_refused + report.n_skipped + report.n_comments + is_header
    assert n_told == len(lines) or (n_told < len(lines) and report.format == "csv" and b'"' in data)
