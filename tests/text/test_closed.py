"""Closed stretches: addresses, code, emoji and whitespace, and what looks like them and is a name."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cige.text import closed
from cige.text.closed import closed_stretches, within
from cige.text.normalize import fold_width

LONG = "iVBORw0KGgo/" * 400


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("见https://sina.cn/c/2013-11-11/a_b.html?x=1#top。", ["https://sina.cn/c/2013-11-11/a_b.html?x=1#top"]),
        ("去www.baidu.com看", ["www.baidu.com"]),
        ("详情：ｗｗｗ．baidu．ｃｏｍ", ["ｗｗｗ．baidu．ｃｏｍ"]),
        ("http://t.cn/zQaVuHD北京", ["http://t.cn/zQaVuHD"]),
        ("t.cn/zQaVuHD北京", ["t.cn/zQaVuHD"]),
        ("https://zh.wikipedia.org/wiki/北京。", ["https://zh.wikipedia.org/wiki/北京"]),
        ("(https://a.cn/b).", ["https://a.cn/b"]),
        ("写信给zhang.san@pku.edu.cn。", ["zhang.san@pku.edu.cn"]),
        ("运行`pip install cige`后", ["`pip install cige`"]),
        ("```python\nBeijing = 1\n```", ["```python\nBeijing = 1\n```"]),
        ('<a href="x">北京</a><br/>', ['<a href="x">', "</a><br/>"]),
        ("<!DOCTYPE html>\n张三&nbsp;&lt;李四&gt;", ["<!DOCTYPE html>\n", "&nbsp;&lt;", "&gt;"]),
        ("张三&#160;在&#x5317;京&ldquo;好&rdquo;", ["&#160;", "&#x5317;", "&ldquo;", "&rdquo;"]),
        *(
            (f"{tag}李明收", [tag])
            for tag in (f'<img src="data:image/png;base64,{LONG}">', f"<a href='/x?q={LONG}' title=\"张三\">")
        ),
        (f"data:image/png;base64,{LONG}==。张三", [f"data:image/png;base64,{LONG}=="]),
        ("调用my_func_1和np.zeros()与MAX_SIZE", ["my_func_1", "np.zeros()", "MAX_SIZE"]),
        ("在/usr/local/bin与C:\\Users\\li", ["/usr/local/bin", "C:\\Users\\li"]),
        ("好😀👨‍👩‍👧北京🇨🇳1️⃣☀️", ["😀👨‍👩‍👧", "🇨🇳1️⃣☀️"]),
        ("回复@张三：好", ["@"]),
        ("RT@张三 @bob", ["@", " @"]),
        ("张三\t李四", ["\t"]),
    ],
)  # fmt: skip
def test_what_is_closed(text, expected):
    assert [text[a:b] for a, b in closed_stretches(text)] == expected


@pytest.mark.parametrize(
    "text",
    ["Bank of China", "AT&T Inc.", "京东JD.com", "AC/DC", "C罗3:0", "2021/05/06", "Fatih_Tekke", "<红楼梦>",
     "H&amp;M", "埃隆&middot;马斯克", "Johnson&Johnson；", "dolce&gabbana;", "&lt", "&#张;",
     "<The Beatles>", "3^2*4", "A@B", "AlphaGo/AlphaZero", "陶\ufffd某", "No.1", "iPhone 15 Pro", f'<p a="{LONG}李明',
     "北\u200d京大学"],
)  # fmt: skip
def test_what_is_open(text):
    assert closed_stretches(text) == []


PIECES = st.sampled_from(
    [
        "http://",
        "www.",
        "a.cn/",
        "`",
        "```",
        "@",
        "<a ",
        ">",
        "_",
        "x()",
        "/",
        "北",
        "😀",
        "\u200d",
        " ",
        "\t",
        "a",
        ".",
        "\n",
    ]
)


@given(st.lists(PIECES, max_size=40).map("".join) | st.text(max_size=60))
def test_stretches_are_sorted_disjoint_and_inside(text):
    found = closed_stretches(text)
    assert all(0 <= a < b <= len(text) for a, b in found)
    assert all(before[1] < after[0] for before, after in pairwise(found))


@given(st.lists(PIECES, max_size=40).map("".join), st.data())
def test_within_is_what_each_character_says(text, data):
    found = closed_stretches(text)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    closed = {k for a, b in found for k in range(a, b)}
    assert {start + k for a, b in within(found, start, end) for k in range(a, b)} == closed & set(range(start, end))


_PARTS = ["`", "```", "https://", "www.", "a.cn/b", "@", "<!--", "-->", "<a>", "a_b", "A_B", "f()", "/usr/bin", "C:\\x"]


@given(
    st.lists(
        st.sampled_from([*_PARTS, "1️⃣", "☀️", "😀", "北京", "ｗｗｗ．ａ", "＠", "／", "x", ".", " "]), max_size=8
    ).map("".join)
)
def test_no_text_with_something_closed_is_passed_over(text):
    patterns = closed._closed()
    assert bool(closed.SIGN.search(text)) or not patterns.search(fold_width(text))
