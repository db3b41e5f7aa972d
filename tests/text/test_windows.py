"""Windows: where texts are cut, and what each window may read."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cige.text.windows import (
    CORE,
    MAX_WORD,
    OVERLAP,
    WHOLE,
    Window,
    overlapping_windows,
    split_windows,
    strided_windows,
    table_cells,
)


def split(text, core, **options):
    return split_windows(text, whole=2 * core, core=core, **options)


def cores(text, core=CORE):
    return [text[w.core_start : w.core_end] for w in split(text, core)]


def test_empty_text_has_no_window():
    assert split_windows("") == []


def test_a_text_of_200_characters_is_one_window():
    text = "他在北京。" * 40
    assert len(text) == WHOLE == 200
    assert split_windows(text) == [Window(0, WHOLE, 0, WHOLE)]
    assert [w.core_end for w in split_windows(text + "好")] == [45, 90, 135, 201]


def test_lines_are_windows_of_their_own_and_keep_their_breaks():
    assert cores("标题\r\n\n正文一。\n正文二。") == ["标题\r\n\n", "正文一。\n", "正文二。"]
    assert cores("甲\u2028乙\u2029丙\r丁") == ["甲\u2028", "乙\u2029", "丙\r", "丁"]


def test_no_window_reads_beyond_its_line():
    windows = split("甲" * 30 + "\n" + "乙" * 30, 10, context=8)
    assert [(w.start, w.end) for w in windows if w.core_start < 31] == [(0, 18), (6, 28), (16, 31), (26, 31)]
    assert min(w.start for w in windows if w.core_start >= 31) == 31


def test_long_lines_are_cut_after_a_sentence_with_its_closing_quote():
    text = "他说：“我到了。”然后他走了很远很远的路"
    assert cores(text, core=9) == ["他说：“我到了。”", "然后他走了很远很远", "的路"]


def test_a_part_ends_at_the_first_sentence_end_after_three_eighths():
    assert cores("好。" + "很" * 16, core=8) == ["好。" + "很" * 6, "很" * 8, "很" * 2]
    assert cores("很好好。好！" + "很" * 12, core=8) == ["很好好。", "好！" + "很" * 6, "很" * 6]


def test_a_part_without_a_sentence_end_ends_at_the_first_clause_after_nine_sixteenths():
    line = "我们说，他们听，" + "很" * 4 + "，" + "好" * 20
    assert cores(line, core=16) == [line[:13], "好" * 16, "好" * 4]
    assert cores(line.replace("，", "、"), core=16)[0] == line[:13].replace("，", "、")


def test_a_line_with_no_sentence_end_is_cut_anywhere():
    assert [len(core) for core in cores("一" * 25, core=10)] == [10, 10, 5]


@pytest.mark.parametrize("mark", ["1,000", "12:30", "http://", "A：B"])
def test_no_cut_within_numbers_times_and_addresses(mark):
    line = "天" * 6 + mark + "地" * 20
    assert cores(line, core=11)[0] == line[:11]


@pytest.mark.parametrize("mark", ["1,000", "12:30", "A：B", "。”"])
def test_what_is_cut_through_at_the_end_of_a_part_has_all_of_its_context(mark):
    n_before = len(mark.rstrip("0123456789B”"))
    line = "天" * (10 - n_before) + mark + "地" * 20
    assert split(line, 10, context=8)[:2] == [Window(0, 18, 0, 10), Window(6, 28, 10, 20)]


@pytest.mark.parametrize(
    "title",
    ["《你好，李焕英》", "《你好！旧时光》", "〈我爱你，中国〉", "“冲啊！小恐龙”", "「你，我」", "『等等……我』"],
)
def test_no_cut_within_a_title_or_a_short_quotation(title):
    part = "天地玄黄" + title + "今日上映，"
    assert cores(part + "一" * 40, core=18)[0] == part


def test_marks_that_are_never_closed_or_far_apart_protect_nothing():
    assert cores("《" + "天，" * 20, core=10)[0] == "《天，天，天，"
    assert cores("“" + "天，" * 30 + "”", core=10)[0] == "“天，天，天，"
    assert cores("他在《人民日报>发表了文章。" + "天" * 30, core=20)[0] == "他在《人民日报>发表了文章。"


def test_no_window_begins_or_ends_within_a_latin_word_or_a_number():
    windows = split("天" * 8 + "Microsoft" + "地" * 20 + "2026" + "天" * 12, 10, context=2)
    text = "天" * 8 + "Microsoft" + "地" * 20 + "2026" + "天" * 12
    read = [text[w.start : w.end] for w in windows]
    assert read[0] == "天" * 8 + "Microsoft" and read[1].startswith("Microsoft")
    assert all(part.count("2026") or not re.search("[0-9]", part) for part in read)
    assert split("a" * 90, 10, context=2)[0].end == 12 + MAX_WORD  # which may have no end


def test_less_context_before_a_window_than_behind_it():
    assert split("一" * 25, 10, context=3)[1] == Window(9, 23, 10, 20)


def test_half_of_the_context_beyond_a_clause():
    assert split("一" * 9 + "，" + "一" * 25, 16, context=8)[:2] == [Window(0, 14, 0, 10), Window(8, 34, 10, 26)]


def test_a_quarter_of_the_context_beyond_a_sentence_end():
    assert split("一" * 9 + "。" + "一" * 11, 10, context=8) == [
        Window(0, 12, 0, 10),
        Window(9, 21, 10, 20),
        Window(16, 21, 20, 21),
    ]


def test_a_run_of_line_breaks_is_bounded_too():
    assert max(map(len, cores("\n" * 1000))) <= CORE


def test_a_million_characters():
    windows = split_windows("天地玄黄" * 250_000)
    assert sum(w.core_end - w.core_start for w in windows) == 1_000_000
    assert max(w.end - w.start for w in windows) == CORE + OVERLAP


@pytest.mark.parametrize(
    ("n", "n_at_once", "expected"),
    [
        (0, 4, []),
        (3, 4, [(0, 3, 0, 3)]),
        (4, 4, [(0, 4, 0, 4)]),
        (5, 4, [(0, 4, 0, 2), (1, 5, 2, 5)]),
        (9, 4, [(0, 4, 0, 3), (2, 6, 3, 5), (4, 8, 5, 6), (5, 9, 6, 9)]),
        (3, 1, [(0, 1, 0, 1), (1, 2, 1, 2), (2, 3, 2, 3)]),
    ],
)
def test_overlapping_windows(n, n_at_once, expected):
    assert overlapping_windows(n, n_at_once) == [Window(*window) for window in expected]


@pytest.mark.parametrize("options", [{"core": 0}, {"whole": -1}, {"context": -1}])
def test_impossible_sizes(options):
    with pytest.raises(ValueError, match="expected core >= 1, and whole and context >= 0"):
        split_windows("天", **options)


def strided(n, n_at_once, stride=128):
    return [(w.start, w.end) for w in strided_windows(n, n_at_once, stride=stride)]


def test_strided_windows_of_the_paper():
    assert strided(600, 500) == [(0, 500), (128, 600)]
    assert strided(500, 500) == [(0, 500)]
    assert strided(10, 4) == [(0, 4), (4, 8), (8, 10)]  # a stride beyond the size would leave pieces out
    assert strided(0, 4) == []
    for sizes in ((0, 128), (3, 0)):
        with pytest.raises(ValueError, match="expected 1 or more"):
            strided(3, *sizes)


@given(st.integers(0, 300), st.integers(1, 60), st.integers(1, 80))
def test_every_unit_is_in_a_strided_window(n_pieces, size, stride):
    found = strided(n_pieces, size, stride)
    assert set(range(n_pieces)) == {k for start, end in found for k in range(start, end)}
    assert all(0 < end - start <= size for start, end in found)
    assert [start for start, _ in found] == [k * min(stride, size) for k in range(len(found))]
    assert not found or found[-1][1] == n_pieces


@given(st.integers(0, 400), st.integers(1, 30))
def test_overlapping_windows_cover_each_unit_once_with_context_on_both_sides(n, n_at_once):
    windows = overlapping_windows(n, n_at_once)
    assert [k for w in windows for k in range(w.core_start, w.core_end)] == list(range(n))
    for w in windows:
        assert 0 <= w.start <= w.core_start < w.core_end <= w.end <= n and w.end - w.start == min(n, n_at_once)
        assert w.start == 0 or w.core_start - w.start >= n_at_once // 4
        assert w.end == n or w.end - w.core_end >= n_at_once // 4
    assert len(windows) <= 2 + n // max(1, n_at_once // 2)


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("张三\t男\t上海市浦东新区张江路88号\n李四", ["张三", "男"]),
        ("睡衣女冬天珊瑚绒加厚保暖套装  包邮", []),  # a title with a gap: half of its cells are short
        ("张三", []),
        ("张三\n李四", []),
        ("姓名  公司\r\n张三  华为\r\n", ["姓名", "公司", "张三", "华为"]),
    ],
)
def test_short_cells_are_marked_in_rows(text, short):
    windows = split_windows(text)
    marked = table_cells(text, windows, 12)
    assert [text[w.start : w.end].strip() for w in marked if w.is_short_cell] == short
    assert [(w.start, w.end, w.core_start, w.core_end) for w in marked] == [
        (w.start, w.end, w.core_start, w.core_end) for w in windows
    ]
