"""Word files with labels after a blank or a slash, and jieba's dictionaries: read with their labels, or refused."""

import pytest

from cige.lexicon.lexicon import Lexicon
from cige.lexicon.typed_lines import labelled_word, most_are_labelled
from cige.lexicon.user_word import UserWord
from cige.lexicon.words_file import NO_COUNT, read_words


def read(tmp_path, *lines, name="words.txt"):
    path = tmp_path / name
    path.write_text("\n".join(lines), encoding="utf-8")
    return read_words(path, spaces=True)


def pairs(found):
    return [(word.text, word.label) for word in found.user_words]


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("林霁棠 PER", ("林霁棠", "PER")),
        ("林霁棠/PER", ("林霁棠", "PER")),
        ("林霁棠 / PER", ("林霁棠", "PER")),
        ("林霁棠\u3000PER", ("林霁棠", "PER")),
        ("林霁棠  PER ", ("林霁棠", "PER")),
        ("苹果 15 Pro PRODUCT", ("苹果 15 Pro", "PRODUCT")),
        ("John Smith PER", ("John Smith", "PER")),
        ("林霁棠 3 nr", ("林霁棠", "PER")),
        ("林霁棠 nr", ("林霁棠", "PER")),
        ("云栖小镇 100 ns", ("云栖小镇", "LOC")),
        ("云栖小镇/ns", ("云栖小镇", "LOC")),
        ("阿里云 20 nt", ("阿里云", "ORG")),
        ("创新办 3 nz", ("创新办", None)),
        ("维克多 3 nrt", ("维克多", "PER")),
        # names with blanks, slashes and capital letters
        ("iPhone 15", ("iPhone 15", None)),
        ("AC/DC", ("AC/DC", None)),
        ("小米 AI", ("小米 AI", None)),
        ("BIG BOOK", ("BIG BOOK", None)),
        ("小米 15 n", ("小米 15 n", None)),
        ("林霁棠 per", ("林霁棠 per", None)),
        ("ABC 3 nr", ("ABC 3 nr", None)),
    ],
)
def test_one_line_among_plain_words(tmp_path, line, word):
    found = read(tmp_path, "甲乙丙", "丁甲", line, "乙丁", "丙丁")
    assert pairs(found) == [("甲乙丙", None), ("丁甲", None), word, ("乙丁", None), ("丙丁", None)]


@pytest.mark.parametrize("mark", [" ", "/"])
def test_where_most_lines_have_a_label_it_may_be_any(tmp_path, mark):
    lines = ["云栖", f"林霁棠{mark}HERO", f"张三{mark}HERO", f"李四{mark}VILLAIN", f"王五{mark}VILLAIN", "iPhone AI"]
    words = [("林霁棠", "HERO"), ("张三", "HERO"), ("李四", "VILLAIN"), ("王五", "VILLAIN")]
    assert pairs(read(tmp_path, *lines)) == [("云栖", None), *words, ("iPhone AI", None)]
    assert pairs(read(tmp_path, "小冰 AI", "小度 TV")) == [("小冰 AI", None), ("小度 TV", None)]


def test_a_dictionary_of_jieba_is_read_with_labels(tmp_path):
    found = read(
        tmp_path, "云计算 5 n", "李小福 2 nr", "创新办 3 i", "杭州 9 ns", "张三 nr", "凱特琳 nz", "八一双鹿 3 nt"
    )
    assert found.report.format == "pairs" and found.counts == [5, 2, 3, 9, 1, 1, 3]
    assert pairs(found) == [
        ("云计算", None), ("李小福", "PER"), ("创新办", None), ("杭州", "LOC"), ("张三", "PER"), ("凯特琳", None),
        ("八一双鹿", "ORG"),
    ]  # fmt: skip


def test_a_count_before_a_part_of_speech_is_kept_in_a_file_of_counts_after_tabs(tmp_path):
    found = read(tmp_path, "云栖\t12", "云计算\t4", "张三 7 nr")
    assert (found.report.format, found.counts) == ("counts", [12, 4, 7])
    assert pairs(found) == [("云栖", None), ("云计算", None), ("张三", "PER")]


def test_what_is_neither_is_refused_by_name(tmp_path):
    found = read(tmp_path, "云计算 5 n", "李小福 2 nr", "杭州 9 ns", "台中 什么")
    assert found.report.n_refused == 1 and "台中" in str(found.report) and NO_COUNT in str(found.report)


def test_a_part_of_speech_after_a_tab_is_read_too(tmp_path):
    assert pairs(read(tmp_path, "云计算\t5\tn", "李小福\t2\tnr", "杭州\t9\tns")) == [
        ("云计算", None), ("李小福", "PER"), ("杭州", "LOC"),
    ]  # fmt: skip
    assert pairs(read(tmp_path, "张三\tPER", "李小福\t2\tnr")) == [("张三", "PER"), ("李小福", "PER")]


def test_base_words_have_no_labels(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("林霁棠 PER\n张三/PER\n阿里云 ORG\n", encoding="utf-8")
    lexicon = Lexicon.from_file(path)
    assert list(lexicon) == ["林霁棠", "张三", "阿里云"] and lexicon.user_words == ()
    lexicon.add_file(path)
    assert lexicon.user_entries == (UserWord("林霁棠", "PER"), UserWord("张三", "PER"), UserWord("阿里云", "ORG"))


def test_a_format_that_is_given_is_taken_as_it_is(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("林霁棠 PER\n", encoding="utf-8")
    assert read_words(path, format="list", spaces=True).words == ["林霁棠 PER"]


def test_most_lines():
    assert most_are_labelled(["张三 A1".encode(), "李四 HERO".encode(), "王五 HERO".encode()])
    assert not most_are_labelled(["张三".encode(), "李四 HERO".encode()])
    assert not most_are_labelled(["张三 HERO".encode(), "李四 VILLAIN".encode()])
    assert not most_are_labelled([])
    assert labelled_word(b"\xff PER", any_label=True) is not None  # refused as not UTF-8 when the word is decoded
