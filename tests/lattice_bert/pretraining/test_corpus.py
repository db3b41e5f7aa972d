"""Corpora as users have them: with and without blank lines, with endless lines, packed, and with junk in them."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cige.errors import CigeError
from cige.lattice_bert.pretraining.corpus import CorpusReport, CorpusRules, cut_line, documents_of
from cige.lattice_bert.pretraining.units import cut_units


def read(path: Path, **rules) -> tuple[list[tuple[str, ...]], CorpusReport]:
    return read_all([path], CorpusRules(**rules))


def read_all(paths: list[Path], rules: CorpusRules) -> tuple[list[tuple[str, ...]], CorpusReport]:
    report = CorpusReport()
    units = cut_units(paths, 1 << 30, is_document_a_line=rules.is_document_a_line)
    stretches = [stretch for unit in units for stretch in unit.stretches]
    return [document for stretch in stretches for document in documents_of(stretch, rules, report)], report


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "corpus.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_documents_are_parted_by_blank_lines(tmp_path: Path) -> None:
    documents, report = read(written(tmp_path, "\n\n甲。\n乙。\n\n \u3000\n\n丙。\r\n\n"))
    assert documents == [("甲。", "乙。"), ("丙。",)]
    assert (report.n_documents, report.n_lines, report.n_characters, report.n_blank) == (2, 3, 6, 6)
    assert report.notes(CorpusRules()) == []


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_packed_files_and_several(tmp_path: Path, pack) -> None:
    (tmp_path / "a").write_bytes(pack("甲\n乙".encode()))
    (tmp_path / "b").write_text("丙", encoding="utf-8")
    found, _ = read_all([tmp_path / "a", tmp_path / "b"], CorpusRules())
    assert found == [("甲", "乙"), ("丙",)]


def test_no_blank_lines_is_one_document_and_is_told(tmp_path: Path) -> None:
    path = written(tmp_path, "甲\n乙\n丙\n丁\n戊")
    documents, report = read(path)
    assert documents == [("甲", "乙", "丙", "丁", "戊")]
    assert "--document-a-line" in report.notes(CorpusRules())[0]
    rules = CorpusRules(is_document_a_line=True)
    documents, report = read(path, is_document_a_line=True)
    assert documents == [("甲",), ("乙",), ("丙",), ("丁",), ("戊",)] and not report.notes(rules)


def test_long_documents_are_cut(tmp_path: Path) -> None:
    documents, report = read(written(tmp_path, "甲\n" * 7 + "\n乙"), max_document=3)
    assert [len(d) for d in documents] == [3, 3, 1, 1]
    assert report.n_cut_documents == 1 and "more than 3 lines" in report.notes(CorpusRules(max_document=3))[0]


def test_a_line_of_a_million_characters(tmp_path: Path) -> None:
    text = ("今天天气很好，我们去公园。" * 80_000)[:1_000_000]
    documents, report = read(written(tmp_path, text))
    assert "".join(line for document in documents for line in document) == text
    assert max(len(line) for document in documents for line in document) == 13
    assert report.n_cut_lines == 1 and report.n_forced == 0
    documents, report = read(written(tmp_path, "甲" * 1_000_000))
    assert report.n_forced == 12_499 and report.n_characters == 1_000_000


def test_cuts_prefer_sentences_then_clauses() -> None:
    assert cut_line("他说：“好。”然后，走了！", 7) == (["他说：“好。”", "然后，走了！"], 0)
    assert cut_line("一二三，四五六，七八九。", 9) == (["一二三，四五六，", "七八九。"], 0)
    assert cut_line("一二三四五六七", 3) == (["一二三", "四五六", "七"], 2)


@given(st.text(alphabet="甲乙a，。；！ ”", min_size=1), st.integers(1, 9))
def test_cutting_loses_nothing_but_white_space(text: str, max_line: int) -> None:
    parts, _ = cut_line(text, max_line)
    assert "".join(parts).replace(" ", "") == text.replace(" ", "")
    assert all(0 < len(part) <= max_line for part in parts)


def test_a_few_bad_lines_are_left_out_and_named(tmp_path: Path) -> None:
    lines = ["好的一行。".encode()] * 300
    lines[7], lines[9] = "坏".encode("gb18030"), b"nul\0"
    documents, report = read(written(tmp_path, b"\n".join(lines)))
    assert len(documents[0]) == 298 and report.n_bad == 2
    note = report.notes(CorpusRules())[-1]
    assert "2 lines left out" in note and "line 8" in note and "line 10" in note


@pytest.mark.parametrize("junk", [bytes(range(256)) * 50, "中文文本\n".encode("gb18030") * 2000, b"\0\n" * 5])
def test_binary_junk_is_refused(tmp_path: Path, junk: bytes) -> None:
    with pytest.raises(CigeError, match="not UTF-8 text"):
        read(written(tmp_path, junk))
