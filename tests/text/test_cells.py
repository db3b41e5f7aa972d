"""Cells: what whitespace sets apart, and which whitespace a name may run over."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cige.text.cells import cells, closed_whitespace, is_unbroken


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("张三", ["张三"]),
        ("张三\t北京", ["张三\t", "北京"]),
        ("张三  北京\u3000\u3000上海", ["张三  ", "北京\u3000\u3000", "上海"]),
        ("张三 北京", ["张三 北京"]),
        ("  张三", ["  ", "张三"]),
        ("标题\r\n\n正文", ["标题\r\n\n", "正文"]),
        ("甲\u2028乙\x0b丙\x85丁", ["甲\u2028", "乙\x0b", "丙\x85", "丁"]),
        ("他来了，  又走了", ["他来了，  又走了"]),  # a sentence goes on after a comma
        ("他来了，\n又走了", ["他来了，\n", "又走了"]),  # but not over a line break
        ("姓名：\t张三", ["姓名：\t", "张三"]),
    ],
)
def test_cells(text, expected):
    assert [text[a:b] for a, b in cells(text)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Bank of China", []),
        ("小米 14 和 iPhone", []),
        ("Bank  of\tChina", [(4, 6), (8, 9)]),
        ("张三 李四", [(2, 3)]),
        ("张三\u3000李四\xa0王五", [(2, 3), (5, 6)]),
        ("сбер банк", []),
        ("한국 은행", []),
        ("トヨタ 自動車", [(3, 4)]),
        (" 张三 ", [(0, 1), (3, 4)]),
    ],
)
def test_closed_whitespace(text, expected):
    assert list(closed_whitespace(text)) == expected


@given(st.text("中a \t\u3000\u2028\x1c\x85", max_size=5))
def test_an_unbroken_text_is_a_cell_without_whitespace(text):
    assert is_unbroken(text) == (text != "" and not any(char.isspace() for char in text))
