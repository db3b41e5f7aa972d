"""Building a list of names from collected ones: counts, common words, and the table of kinds."""

from __future__ import annotations

from pathlib import Path

import pytest

from cige.errors import LexiconError
from cige.lexicon.names_build import KindRule, build_names, common_words, count_in, read_kinds, read_rows

ROWS = [
    ("女子力", "COMPANY", "short"),
    ("华为", "COMPANY", "short"),
    ("华为", "COMPANY", "listed"),
    ("华为", "BRAND", "brands"),
    ("无人提", "COMPANY", "listed"),
    ("王", "PER", "persons"),
]
RULES = {
    ("COMPANY", "short"): KindRule("COMPANY/short", min_count=2, no_common=True),
    ("COMPANY", "listed"): KindRule("COMPANY/listed"),
    ("PER", "persons"): KindRule("PER"),
}


def test_rules_decide_what_stays():
    counts = {"女子力": 9, "华为": 2}
    names, report = build_names(ROWS, RULES, counts=counts, is_common=lambda word: word == "女子力", version="7")
    assert names.kinds == {"华为": ("COMPANY/short", "COMPANY/listed"), "无人提": ("COMPANY/listed",)}
    assert names.version == "7"
    assert report.n_kept == {"COMPANY/short": 1, "COMPANY/listed": 2}
    assert report.n_common == {"COMPANY/short": 1} and not report.n_rare
    assert report.n_without_rule == 1 and report.n_refused == 1


def test_names_below_their_count_are_left_out():
    names, report = build_names(ROWS, RULES, counts={"华为": 1}, is_common=lambda _: False)
    assert names.kinds["华为"] == ("COMPANY/listed",)
    assert report.n_rare == {"COMPANY/short": 2}


def test_no_name_left_is_an_error():
    with pytest.raises(LexiconError, match="no name is left"):
        build_names(ROWS[:1], {}, counts={}, is_common=lambda _: False)


def test_names_are_counted_everywhere_also_in_longer_words(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("北京大学在北京\n" * 1500 + "ＡＩ在 App Store 里\n" * 700, encoding="utf-8")
    assert count_in(text, ["北京", "北京大学", "上海", "AI", "App Store"]) == {
        "北京": 3000, "北京大学": 1500, "上海": 0, "AI": 700, "App Store": 700,
    }  # fmt: skip


def test_rows_and_kinds_are_read_or_named(tmp_path: Path):
    rows, kinds = tmp_path / "rows.tsv", tmp_path / "kinds.tsv"
    rows.write_text("# note\n华为\tCOMPANY\tlist\n", encoding="utf-8")
    kinds.write_text("# note\nCOMPANY\tlist\tCOMPANY/x\t3\tdrop\nPER\tlist\tPER\t0\tkeep\n", encoding="utf-8")
    assert list(read_rows(rows)) == [("华为", "COMPANY", "list")]
    assert read_kinds(kinds) == {
        ("COMPANY", "list"): KindRule("COMPANY/x", 3, True),
        ("PER", "list"): KindRule("PER", 0, False),
    }
    for wrong in ("COMPANY\tlist\tCOMPANY/x\t3", "COMPANY\tlist\tCOMPANY/x\tmany\tdrop", "A\tb\tC\t1\tmaybe"):
        kinds.write_text(wrong, encoding="utf-8")
        with pytest.raises(LexiconError, match="line 1"):
            read_kinds(kinds)
    kinds.write_text("# nothing\n", encoding="utf-8")
    with pytest.raises(LexiconError, match="no rule"):
        read_kinds(kinds)
    rows.write_text("华为\tCOMPANY\n", encoding="utf-8")
    with pytest.raises(LexiconError, match="line 1"):
        list(read_rows(rows))


def test_common_words_are_those_that_are_no_names():
    pytest.importorskip("jieba")
    is_common = common_words()
    assert is_common("我们") and is_common("学习")
    assert not is_common("北京") and not is_common("不在词典里的名字")


def test_text_that_is_empty_or_in_another_encoding_is_named(tmp_path: Path):
    text = tmp_path / "text.txt"
    text.write_text("", encoding="utf-8")
    with pytest.raises(LexiconError, match="none of the names occurs"):
        count_in(text, ["北京"])
    text.write_bytes("北京\n".encode("gbk"))
    for read in (lambda: count_in(text, ["北京"]), lambda: list(read_rows(text)), lambda: read_kinds(text)):
        with pytest.raises(LexiconError, match="line 1: not UTF-8"):
            read()


def test_rows_lose_invisible_characters(tmp_path):
    (tmp_path / "rows.tsv").write_text("阿莫\u200b西林\u200b\tMEDICINE\tweb\n", encoding="utf-8")
    assert list(read_rows(tmp_path / "rows.tsv")) == [("阿莫西林", "MEDICINE", "web")]
