"""Counts in word lists are whole numbers of at most 18 digits, which an int64 holds."""

from __future__ import annotations

import numpy as np
import pytest

from cige.lexicon.delimited import MAX_NUMBER, column_names, whole_number


@pytest.mark.parametrize("field", ["0", "7", "007", "9" * 18, "0" * 17 + "1"])
def test_up_to_18_digits_are_a_number(field):
    assert whole_number(field) == whole_number(field.encode()) == int(field) <= MAX_NUMBER


@pytest.mark.parametrize("field", ["", " 1", "-1", "+1", "1.0", "1e3", "1_000", "一", "²", "9" * 19, "0" * 18 + "1"])
def test_nothing_else_is(field):
    assert whole_number(field) is None and whole_number(field.encode()) is None


def test_the_largest_fits_an_int64():
    assert whole_number(str(MAX_NUMBER)) == MAX_NUMBER <= np.iinfo(np.int64).max


@pytest.mark.parametrize(
    ("cells", "names"),
    [
        (["Word", "type", "note", ""], ["word", "label", "note", ""]),
        (["word", "label", "label"], ["word", "label", "label (again)"]),
        (["词", "名称", "类型"], ["word", "名称", "label"]),
        (["name", "word"], ["name", "word"]),
        (["编号", "企业名称", "类型"], ["编号", "word", "label"]),
        (["企业名称", "词"], ["企业名称", "word"]),
        (["小米", "公司名称"], ["小米", "公司名称"]),  # a word and its label
        (["小米", "公司名称", "type"], ["小米", "公司名称", "label"]),
        (["企业名称", "产品名称"], ["企业名称", "产品名称"]),
        (["你的名字", "Your Name"], ["你的名字", "Your Name"]),
        (["word", "Word", "", ""], ["word", "Word (again)", "", ""]),
    ],
)
def test_one_column_is_the_words_and_one_the_labels(cells, names):
    assert column_names(cells) == names


def test_a_table_has_names_of_columns_for_certain():
    assert column_names(["id", "company_name"], is_header=True) == ["id", "word"]
    assert column_names(["id", "company_name"]) == ["id", "company_name"]


def test_invisible_characters_hide_no_name_of_a_column():
    assert column_names(["\u200b企业名称", "简\u200b称", "la\u200bbel"]) == ["word", "简\u200b称", "label"]
