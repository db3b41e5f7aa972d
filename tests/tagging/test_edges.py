"""Edges of entities: what is taken off and what belongs."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cige.tagging.edges import is_outside_names, open_part, trimmed
from cige.text.closed import closed_stretches


def cut(text: str) -> str | None:
    edges = trimmed(text, 0, len(text))
    return None if edges is None else text[slice(*edges)]


@pytest.mark.parametrize(
    "text",
    ["北京", "《红楼梦》", "“三大问题”工作小组", "上海医药（集团）", "《上古卷轴4》(ElderScrollsIV)",
     '"数字福建"专家委员会', "『花儿』队", "Walt Disney Co.", "PolymerGroupInc.", "S.A.", "John F. Kennedy Jr.", "41%",
     "张**", "李*", "C++", "Bank of China", "让·雅克", "Levi's", "（（集团））", "小米 14"],
)  # fmt: skip
def test_legal_names_stay_as_they_are(text):
    assert cut(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("，北京。", "北京"),
        (" 北京\t", "北京"),
        ("《红楼梦", "红楼梦"),
        ("红楼梦》", "红楼梦"),
        ("）北京（", "北京"),
        ("《南京！南京！", "南京！南京"),
        ("拉塞尔·", "拉塞尔"),
        ("@张三", "张三"),
        ("去了。", "去了"),
        ("end.", "end"),
        ("“呵呵，", "呵呵"),
        ("\u200b北京\u202e", "北京"),
        ("\ufffd北京\ufffd\ud800", "北京"),
        ("》《", None),
        ("（）", "（）"),
        ("，。 ", None),
    ],
)
def test_what_is_around_a_name_is_taken_off(text, expected):
    assert cut(text) == expected


@pytest.mark.parametrize(
    ("text", "start", "end", "found"),
    [
        ("张**", 0, 3, (0, 3)),  # asterisks in place of characters, at the start of the text
        ("是张**", 1, 4, (1, 4)),
        ("*张*", 1, 3, (1, 2)),
        ('甲"乙"', 0, 4, (0, 4)),  # marks that open and close: with their counterpart, and without
        ('"甲"', 0, 3, (0, 3)),
        ('甲"', 0, 2, (0, 1)),
        ('"甲', 0, 2, (1, 2)),
        ("Co.", 0, 3, (0, 3)),  # a full stop of an abbreviation, and of a sentence
        ("甲.", 0, 2, (0, 1)),
        ("甲，", 0, 2, (0, 1)),
        ("10%", 0, 3, (0, 3)),
    ],
)
def test_marks_that_are_kept_and_those_that_are_not(text, start, end, found):
    assert trimmed(text, start, end) == found


def test_bold_of_markdown_is_not_part_of_a_name():
    assert trimmed("**张三**", 0, 6) == trimmed("**张三**", 2, 6) == (2, 4)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("张三\t欧阳修", "欧阳修"),
        ("张三 李四", "张三"),
        ("😀北京", "北京"),
        ("@张三", "张三"),
        ("http://a.cn/b", None),
        ("北京", "北京"),
    ],
)
def test_the_longest_open_part(text, expected):
    part = open_part(text, closed_stretches(text), 0, len(text))
    assert (None if part is None else text[slice(*part)]) == expected


CHARS = st.sampled_from("北京《》（）()“”\"',。 \t·*.%a-😀")


@given(st.text(CHARS, min_size=1, max_size=12), st.data())
def test_trimming_is_exact(text, data):
    """What is taken off is punctuation or space; trimming again changes nothing; letters are never lost."""
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    edges = trimmed(text, start, end)
    letters = [k for k in range(start, end) if text[k].isalnum() or text[k] == "😀"]
    if edges is None:
        assert not letters
        return
    assert start <= edges[0] < edges[1] <= end
    assert all(edges[0] <= k < edges[1] for k in letters)
    assert all(unicodedata.category(text[k])[0] in "PZC" for k in {*range(start, end)} - {*range(*edges)})
    assert trimmed(text, *edges) == edges
    assert not text[edges[0]].isspace() and not text[edges[1] - 1].isspace()


@given(st.text(CHARS, min_size=1, max_size=12))
def test_an_open_part_overlaps_nothing_closed(text):
    closed = closed_stretches(text)
    part = open_part(text, closed, 0, len(text))
    assert part is None or all(b <= part[0] or part[1] <= a for a, b in closed)


def test_no_letter_or_digit_is_taken_off():
    """`trimmed` looks no further at a span that begins and ends with one."""
    assert not [char for char in map(chr, range(0x110000)) if char.isalnum() and is_outside_names(char)]


def test_brackets_of_different_widths_are_a_pair():
    assert cut("上海医药(集团）") == "上海医药(集团）" and cut("（中国)银行") == "（中国)银行"
    assert cut("上海医药［集团)") == "上海医药［集团"
