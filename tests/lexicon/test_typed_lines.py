"""Word lists with labels and modes: what people write, and what is refused."""

from __future__ import annotations

import json

import pytest

from cige.errors import LexiconError
from cige.lexicon.typed_lines import (
    BAD_COUNT,
    MODE_AS_LABEL,
    NO_HEADER,
    NO_OBJECT,
    NO_TEXT,
    NOT_FIRST,
    TOO_MANY,
    UNCLOSED,
)
from cige.lexicon.user_word import BAD_LABEL, BLOCKED_LABEL, NO_LABEL, NO_MODE, UserWord
from cige.lexicon.word_rules import CONTROL
from cige.lexicon.words_file import CONTRADICTION, WRONG_SEPARATOR, read_words
from cige.text.normalize import normalize, normalize_word

WORDS = [
    UserWord("贺兰草", "PRODUCT"),
    UserWord("沙葱"),
    UserWord("iPhone 15, Pro", "PRODUCT"),
    UserWord("京", "LOC", "force"),
    UserWord("苹果", None, "block"),
]
FORMS = {
    "labels": "贺兰草\tPRODUCT\n沙葱\niPhone 15, Pro\tPRODUCT\n京\tLOC\tforce\n苹果\t\tblock\n",
    "csv": '贺兰草,PRODUCT\n沙葱\n"iPhone 15, Pro", PRODUCT\n京,LOC,FORCE\n苹果,,block\n',
    "jsonl": "".join(
        json.dumps({"word": w.text, "label": w.label, "mode": w.mode, "note": 1}, ensure_ascii=False) + "\n"
        for w in WORDS
    ),
}
HEADERS = {
    "labels": "mode\tword\tlabel\n\t贺兰草\tPRODUCT\n\t沙葱\n\tiPhone 15, Pro\tPRODUCT\nforce\t京\tLOC\nblock\t苹果\n",
    "csv": 'Word,Label,Mode\n贺兰草,PRODUCT\n沙葱\n"iPhone 15, Pro",PRODUCT,\n京,LOC,force\n苹果,,block\n',
}


def read(folder, text, **options):
    path = folder / "words"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_words(path, **({"spaces": True} | options))


def refusals(found):
    return [refusal[::2] for refusal in found.report.refused]


@pytest.mark.parametrize("format", FORMS)
@pytest.mark.parametrize("given_format", ["auto", "by name"])
def test_every_format_gives_the_same_words(tmp_path, format, given_format):
    found = read(tmp_path, FORMS[format], format="auto" if given_format == "auto" else format)
    assert found.user_words == WORDS and found.words == [word.text for word in WORDS]
    assert (found.report.format, found.report.n_taken, found.report.n_refused) == (format, 5, 0)
    assert found.counts is None and sum(label is not None for label, _ in found.of_words) == 3


def test_keys_of_json_lines_may_have_the_names_of_columns(tmp_path):
    rows = [
        {"name": "grass-1", "text": "贺兰草", "type": "PRODUCT"},
        {"词": "沙葱", "类型": None},
        {"Name": "iPhone 15, Pro", "Label": "PRODUCT"},
        {"名称": "京", "标签": "LOC", "模式": "force"},
        {"name": "x", "type": "noun", "word": "苹果", "label": None, "mode": "block", "频次": 7},
    ]
    found = read(tmp_path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    assert found.user_words == WORDS and found.counts == [1, 1, 1, 1, 7]


@pytest.mark.parametrize(
    "text", ["词语\n沙葱\n贺兰草\n", '\ufeff"word"\r\n"沙葱"\r\n"贺兰草"\r\n', '"沙葱"\n"贺兰草"\n']
)
def test_a_csv_file_of_words_alone(tmp_path, text):
    path = tmp_path / "words.csv"
    path.write_text(text, encoding="utf-8", newline="")
    assert read_words(path, spaces=True).user_words == [UserWord("沙葱"), UserWord("贺兰草")]
    path = path.rename(tmp_path / "words.txt")  # where a quote is a character, and any line a word
    assert read_words(path, spaces=True).words == text.strip("\ufeff").split()


@pytest.mark.parametrize("format", HEADERS)
def test_columns_may_have_names_in_any_order(tmp_path, format):
    assert read(tmp_path, HEADERS[format]).user_words == WORDS


@pytest.mark.parametrize("format", FORMS)
def test_comments_blank_lines_marks_and_windows_line_ends(tmp_path, format):
    text = "# 品名\n\n" + FORMS[format].replace("\n", "\r\n") + "  #沙葱\tPRODUCT\r\n \r\n"
    found = read(tmp_path, b"\xef\xbb\xbf" + text.encode())
    assert found.user_words == WORDS
    assert (found.report.n_comments, found.report.n_refused, found.report.n_skipped) == (2, 0, 0)
    assert "2 comment lines" in str(found.report)


def test_comments_above_a_plain_list(tmp_path):
    found = read(tmp_path, "# 牛, 羊\n贺兰草\n#\n沙葱\n")
    assert (found.words, found.report.format, found.report.n_comments) == (["贺兰草", "沙葱"], "list", 2)
    assert [word.label for word in found.user_words] == [None, None]


def test_a_number_in_the_second_column_is_a_count(tmp_path):
    found = read(tmp_path, "贺兰草\t12\n沙葱\t3\n苁蓉\n")
    assert (found.report.format, found.counts, refusals(found)) == (
        "counts", [12, 3], [(3, "count missing or not a whole number")],
    )  # fmt: skip
    found = read(tmp_path, "贺兰草\t12\n沙葱\t3\n苁蓉\tPRODUCT\n")
    assert (found.user_words[2], found.counts) == (UserWord("苁蓉", "PRODUCT"), [12, 3, 1])
    found = read(tmp_path, "贺兰草\tPRODUCT\n沙葱\tPRODUCT\n苁蓉\t7\n")
    assert found.user_words[2] == UserWord("苁蓉") and found.counts == [1, 1, 7]
    found = read(tmp_path, "word,count,label\n贺兰草,12,PRODUCT\n沙葱,3,\n苁蓉,many,\n", min_count=4)
    assert found.user_words == [UserWord("贺兰草", "PRODUCT")] and found.counts == [12]
    assert found.report.n_skipped == 1 and refusals(found) == [(4, BAD_COUNT)]


PLAIN = "".join(f"词语{k}\n" for k in range(300))  # more lines than the format is detected from


@pytest.mark.parametrize("before", ["", PLAIN], ids=["at the start", "far from the start"])
def test_labels_count_however_few_lines_have_one(tmp_path, before):
    found = read(tmp_path, before + "沙葱\n贺兰草\tPRODUCT\n京\tLOC\tforce\n苁蓉\tMY PRODUCT\n锁阳\n苹果\t\tblock\n")
    assert found.user_words[before.count("\n") :] == [
        UserWord("沙葱"),
        UserWord("贺兰草", "PRODUCT"),
        UserWord("京", "LOC", "force"),
        UserWord("锁阳"),
        UserWord("苹果", None, "block"),
    ]
    assert refusals(found) == [(before.count("\n") + 4, BAD_LABEL)] and "MY PRODUCT" not in str(found.words)
    assert "(label MY PRODUCT)': not a label" in str(found.report)
    plain = read(tmp_path, before + "沙葱\n贺兰草\tPRODUCT\n锁阳\n", format="list")
    assert plain.report.n_refused == 1, "whoever asks for a list gets one"


def test_labels_far_from_the_start_of_words_with_counts(tmp_path):
    counted = PLAIN.replace("\n", "\t7\tn\n")
    found = read(tmp_path, counted + "贺兰草\tPRODUCT\n沙葱\n苁蓉\t\tblock\n")
    assert found.user_words[300:] == [UserWord("贺兰草", "PRODUCT"), UserWord("苁蓉", None, "block")]
    assert found.counts == [7] * 300 + [1, 1] and refusals(found) == [(302, "count missing or not a whole number")]


def test_dictionaries_of_word_segmenters(tmp_path):
    with_tabs = "云计算\t5\tn\n李小福\t2\tnr\n创新办\t3\ti\n贺兰草\tPRODUCT\n"
    found = read(tmp_path, with_tabs)
    names = [UserWord("李小福", "PER"), UserWord("创新办"), UserWord("贺兰草", "PRODUCT")]
    assert found.user_words == [UserWord("云计算"), *names]
    assert (found.counts, found.report.n_refused) == ([5, 2, 3, 1], 0)
    with_spaces = read(tmp_path, "云计算 5 n\n李小福 2 nr\n创新办 3 i\n台中\n")
    assert with_spaces.words == ["云计算", "李小福", "创新办"] and with_spaces.counts == [5, 2, 3]
    assert refusals(with_spaces) == [(4, "count missing or not a whole number")]
    names = ["小米 14 pro", "iPhone 15", "奔驰 600"]
    assert read(tmp_path, "\n".join(names)).words == names, "numbers that belong to names"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("京\tLOC", "single character"),
        ("京", "single character"),
        ("沙葱\t*", BAD_LABEL),
        ("沙葱\tMY PRODUCT", BAD_LABEL),
        ("沙葱\tPRODUCT\tforced", NO_MODE),
        ("沙葱\t\tforce", NO_LABEL),
        ("沙葱\tPRODUCT\tblock", BLOCKED_LABEL),
        ("沙葱\tPRODUCT\tforce\tx", TOO_MANY),
        ("沙葱\tblock", MODE_AS_LABEL),
        ("\tPRODUCT", "empty"),
        ("贺兰草\tPRODUCT", "duplicate"),
        ("贺兰草\tPLACE", CONTRADICTION),
        ("贺兰草", CONTRADICTION),
    ],
)
def test_what_is_refused_is_listed_with_line_and_reason(tmp_path, line, reason):
    found = read(tmp_path, f"贺兰草\tPRODUCT\n{line}\n苁蓉\tPRODUCT\n")
    assert found.words == ["贺兰草", "苁蓉"] and refusals(found) == [(2, reason)]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"label": "X"}', NO_OBJECT),
        ('{"word": 3}', NO_OBJECT),
        ("沙葱", NO_OBJECT),
        ('{"word": "沙葱"', NO_OBJECT),
        ("{{{", NO_OBJECT),
        ('{"word":' * 100_000, NO_OBJECT),
        ('{"word": "沙葱", "label": 3}', NO_TEXT),
        ('{"word": "沙葱", "mode": ["force"]}', NO_TEXT),
        ('{"word": "沙葱", "count": "3"}', BAD_COUNT),
        ('{"word": "沙\\ud800葱"}', "character that cannot be encoded (U+FFFD or a lone surrogate)"),
    ],
)
def test_what_is_refused_of_json_lines(tmp_path, line, reason):
    found = read(tmp_path, f'{{"word": "贺兰草"}}\n{line}\n{{"word": "苁蓉", "count": 3}}\n{{"word": "锁阳"}}\n')
    assert found.words == ["贺兰草", "苁蓉", "锁阳"] and refusals(found) == [(2, reason)]
    assert found.counts == [1, 3, 1]


def test_a_line_that_is_not_utf8_costs_only_itself(tmp_path):
    found = read(tmp_path, "贺兰草\tPRODUCT\n".encode() + b"\xc4\xcf\tLOC\n" + "苁蓉\tPRODUCT\n".encode())
    assert found.words == ["贺兰草", "苁蓉"] and refusals(found) == [(2, "not UTF-8")]


def test_base_words_have_no_rules(tmp_path):
    found = read(tmp_path, "贺兰草\tPRODUCT\n京\tLOC\tforce\n贺兰 草\tPRODUCT\n沙葱\t\tforce\n", spaces=False)
    assert found.words == ["贺兰草", "沙葱"]
    assert refusals(found) == [(2, "single character"), (3, "whitespace inside")]


@pytest.mark.parametrize("count", ["12.0", "12.", "12.00", "1,000", "1,234,567.0", "007", "0"])
def test_counts_as_programs_write_them(tmp_path, count):
    number = int(float(count.replace(",", "")))
    for text in (f"贺兰草\t{count}\n", f"沙葱\tPRODUCT\n贺兰草\t{count}\n", f"{PLAIN}贺兰草\t{count}\n"):
        found = read(tmp_path, text)
        assert found.user_words[-1] == UserWord("贺兰草") and found.counts[-1] == number and not found.report.n_refused
    for text in (f'word,count\n贺兰草,"{count}"\n', f'沙葱,PRODUCT\n贺兰草,"{count}"\n'):
        assert read(tmp_path, text, format="csv").counts[-1] == number
    found = read(tmp_path, f'{{"word": "贺兰草", "count": {number}.0}}\n')
    assert found.counts == [number]


@pytest.mark.parametrize("count", ["3.5", "-1", "1e5", "12.01", "1,00", ".5", "1" * 19])
def test_a_number_is_never_a_label(tmp_path, count):
    for text in (
        f"沙葱\tPRODUCT\n贺兰草\t{count}\n",
        f"贺兰草\t{count}\n沙葱\t3\n苁蓉\t3\n",
        f"{PLAIN}贺兰草\t{count}\n",
    ):
        found = read(tmp_path, text)
        assert "贺兰草" not in found.words and found.report.n_refused == 1
        assert refusals(found)[0][1] in (BAD_COUNT, "count missing or not a whole number")
    found = read(tmp_path, f'沙葱,PRODUCT\n贺兰草,"{count}"\n')
    assert refusals(found) == [(2, BAD_COUNT)]


def test_a_label_that_is_a_number_needs_a_header(tmp_path):
    assert read(tmp_path, "word\tlabel\n贺兰草\t007\n").user_words == [UserWord("贺兰草", "007")]
    assert read(tmp_path, "沙葱\tX\n贺兰草\t007\n").user_words[1] == UserWord("贺兰草")


def read_named(folder, name, text):
    (folder / name).write_text(text, encoding="utf-8")
    return read_words(folder / name, spaces=True)


@pytest.mark.parametrize(("name", "mark"), [("w.csv", ","), ("w.tsv", "\t")])
def test_cells_in_quotes_may_have_line_breaks(tmp_path, name, mark):
    rows = [
        ["note", "word", "label"],
        ['"in two\n# lines, with ""quotes""\n\nand a blank one"', "贺兰草", "PRODUCT"],
        ["", '"云雀\n科技"', "COMPANY"],
        ["", '"沙葱\n"', "PRODUCT"],
        ["", "铁", "PRODUCT"],
    ]
    found = read_named(tmp_path, name, "".join(mark.join(row) + "\n" for row in rows))
    assert found.user_words == [UserWord("贺兰草", "PRODUCT"), UserWord("沙葱", "PRODUCT")]
    assert refusals(found) == [(6, CONTROL), (10, "single character")] and found.report.n_comments == 0


@pytest.mark.parametrize("after", ["沙葱,PRODUCT\n", '"沙葱",PRODUCT\n', '"沙葱,PRODUCT\n', "沙葱,PRODUCT\n" * 300])
def test_a_quote_that_is_not_closed_costs_its_line(tmp_path, after):
    found = read_named(tmp_path, "w.csv", '贺兰草,PRODUCT\n"青松药业,COMPANY\n' + after + "苁蓉,PRODUCT\n")
    both = after.startswith('"沙葱,')
    assert found.words == ["贺兰草", *([] if both else ["沙葱"]), "苁蓉"]
    assert refusals(found)[: 1 + both] == [(2, UNCLOSED), (3, UNCLOSED)][: 1 + both]


def test_a_word_with_a_quote_is_one_where_quotes_mean_nothing(tmp_path):
    assert read_named(tmp_path, "w.txt", '"云雀\tCOMPANY\n15" 屏\tX\n').words == ['"云雀', '15" 屏']
    assert read_named(tmp_path, "w.csv", 'word,label\n15" 屏,X\n"15"" 屏",Y\n').words == ['15" 屏']


@pytest.mark.parametrize("mark", [";", "，", "；"])
@pytest.mark.parametrize("header", ["", "word;label\n", "词;类型\n"])
def test_other_separators_of_csv(tmp_path, mark, header):
    text = header + '贺兰草;PRODUCT\n"云雀;科技";COMPANY\n沙葱;\n'
    found = read_named(tmp_path, "w.csv", text.replace(";", mark))
    words = [UserWord("贺兰草", "PRODUCT"), UserWord(f"云雀{normalize_word(mark)}科技", "COMPANY"), UserWord("沙葱")]
    assert (found.user_words, found.report.format, found.report.n_refused) == (words, "csv", 0)
    assert read_named(tmp_path, "w.txt", "贺兰草;牛\n").words == ["贺兰草;牛"]
    assert read_named(tmp_path, "w.csv", "贺兰草;牛\n沙葱\n").words == ["贺兰草;牛", "沙葱"]


@pytest.mark.parametrize(
    ("first", "mark"),
    [
        ("sep=;", ";"),
        ("SEP=,", ","),
        ('"sep=|"', "|"),
        ("sep=\t", "\t"),
        ("sep=\\t\r", "\t"),
        ("# our words\n\n  sep=;", ";"),
        ("sep=;;", ";"),
        ("sep=;,,", ";"),
        ('"sep=;",', ";"),
        ('"sep=,",,', ","),
        ("sep = ^^", "^"),
        ("sep=;" + "," * 9999, ";"),
        ("sep = \t\t", "\t"),
    ],
)
@pytest.mark.parametrize("name", ["w.csv", "w.tsv", "w.txt"])
def test_the_first_line_may_tell_the_separator_as_it_tells_excel(tmp_path, first, mark, name):
    rows = mark.join(["贺兰草", 'PRODUCT\n"云雀;科技"', "COMPANY\n沙葱\n"])
    found = read_named(tmp_path, name, f"\ufeff{first}\n{rows}")
    assert found.user_words == [UserWord("贺兰草", "PRODUCT"), UserWord("云雀;科技", "COMPANY"), UserWord("沙葱")]
    assert (found.report.format, found.report.n_refused) == ("csv", 0)
    for word in ("sep=x", "sep=", "sep=;贺"):
        assert read_named(tmp_path, name, f"{word}\n沙葱\n").words == [normalize(word), "沙葱"]


def test_a_second_line_that_tells_the_separator_is_refused(tmp_path):
    joined = "sep=;\n贺兰草;PRODUCT\n\ufeffsep=;\n云雀科技;COMPANY\n"
    for name, text in (("w.csv", joined), ("w.tsv", joined[6:].replace(";", "\t"))):
        found = read_named(tmp_path, name, text)
        assert found.user_words == [UserWord("贺兰草", "PRODUCT"), UserWord("云雀科技", "COMPANY")]
        assert [reason for _, reason in refusals(found)] == [NOT_FIRST]
    # in a list of words without columns, it may be one
    assert read_named(tmp_path, "w.txt", "贺兰草\nsep=;\n").words == ["贺兰草", "sep=;"]


def test_a_separator_that_no_row_has_is_reported(tmp_path):
    found = read_named(tmp_path, "w.csv", "# words\nsep=;\n贺兰草,PRODUCT\n沙葱,PRODUCT\n")
    assert refusals(found) == [(2, WRONG_SEPARATOR)] and found.report.is_incomplete
    for rows in ("贺兰草\n沙葱\n", "贺兰草,牛\n沙葱;PRODUCT\n"):
        assert not read_named(tmp_path, "w.csv", f"sep=;\n{rows}").report.n_refused


@pytest.mark.parametrize(
    "header", ["产品,类别", "Product Name,Type", "商品名字,分类", "产品名称,企业名称", "产品名称,频次名称"]
)
def test_a_header_that_is_not_understood_is_refused(tmp_path, header):
    found = read_named(tmp_path, "w.csv", f"{header}\n贺兰草,产品\n沙葱,产品\n")
    assert found.user_words == [UserWord("贺兰草", "产品"), UserWord("沙葱", "产品")]
    assert refusals(found) == [(1, NO_HEADER)]


@pytest.mark.parametrize("header", ["编号,产品,类别", "产品,模式,类别", "产品,类别,频次"])
def test_a_header_without_a_column_of_words_is_an_error(tmp_path, header):
    with pytest.raises(LexiconError, match=r"w\.csv, line 1: looks like a header .* name the columns word, label"):
        read_named(tmp_path, "w.csv", f"{header}\n1,贺兰草,产品\n")


@pytest.mark.parametrize(
    ("header", "ignored"),
    [
        ("企业名称,简称", ("简称",)),
        ("药品名称,Type", ()),
        ("客户姓名,部门", ("部门",)),
        ("product_name,label", ()),
    ],
)
def test_the_only_column_of_names_is_that_of_the_words(tmp_path, header, ignored):
    found = read_named(tmp_path, "w.csv", f"\ufeff{header}\r\n贺兰草,产品\r\n沙葱,产品\r\n")
    assert found.words == ["贺兰草", "沙葱"] and not found.report.n_refused
    assert found.report.ignored_columns == ignored
    assert {label for label, _ in found.of_words} == {None if ignored else "产品"}
    wide = read_named(tmp_path, "w.csv", f"编号,{header},日期\n1,贺兰草,产品,2024/3/6\n")
    assert wide.words == ["贺兰草"] and wide.report.ignored_columns[0] == "编号"
    first, _ = header.split(",")
    assert read_named(tmp_path, "w.csv", f"{first}\n沙葱\n").words == ["沙葱"]
    for mode in ("", ",force"):
        found = read_named(tmp_path, "w.csv", f"小米,{first}{mode}\n华为,{first}{mode}\n")  # words and labels
        assert found.words == ["小米", "华为"] and {label for label, _ in found.of_words} == {first}


def test_what_is_no_header(tmp_path):
    for name, mark in (("w.txt", "\t"), ("w.csv", ",")):  # `type` is a mode here
        assert read_named(tmp_path, name, f"贺兰草{mark}PRODUCT{mark}type\n").user_words[0].mode == "type"
    for first in ("书名,TERM", "名称,TERM", "贺兰草,产品"):
        assert len(read_named(tmp_path, "w.csv", f"{first}\n沙葱,产品\n").words) == 2
    found = read_named(tmp_path, "w.csv", "名字,备注,频次\n沙葱,好吃,3\n")
    assert found.user_words == [UserWord("沙葱")] and found.counts == [3]
    for text in ("词,备注\n沙葱,好吃\n", "编号,名称\n1,沙葱\n"):
        found = read_named(tmp_path, "w.csv", text)
        assert found.user_words == [UserWord("沙葱")] and not found.report.n_refused
