"""Word lists in every form, and what the report says about bad lines."""

import gzip
import lzma
import os

import pytest

from cige.errors import LexiconError
from cige.lexicon.typed_lines import NO_OBJECT
from cige.lexicon.words_file import detect_format, is_header, read_words

FORMS = {
    "list": "南京\n长江大桥\n南京市\n",
    "counts": "南京\t12\tns\n长江大桥\t3\tns\n南京市\t7\tns\n",
    "pairs": "南京 12 ns\n长江大桥 3 ns\n南京市 7\n",
    "word2vec": "3 4\n南京 1 2 3 4\n长江大桥 .1 .2 .3 .4\n南京市 -1 -2e-3 0 1\n",
}
WRITERS = {
    "plain": lambda path, data: path.write_bytes(data),
    "gz": lambda path, data: path.write_bytes(gzip.compress(data)),
    "xz": lambda path, data: path.write_bytes(lzma.compress(data)),
}


def write(folder, data, name="words.txt"):
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


@pytest.mark.parametrize("packing", WRITERS)
@pytest.mark.parametrize("format", FORMS)
def test_every_format_and_packing_gives_the_same_words(tmp_path, format, packing):
    path = tmp_path / "words.dat"  # the name says nothing: content decides
    WRITERS[packing](path, FORMS[format].encode())
    found = read_words(path)
    assert found.words == ["南京", "长江大桥", "南京市"]
    assert found.report.format == format
    assert found.counts == ([12, 3, 7] if format in ("counts", "pairs") else None)
    assert (found.report.n_taken, found.report.n_refused) == (3, 0)


def test_word2vec_without_header_and_with_a_first_word_of_digits(tmp_path):
    assert read_words(write(tmp_path, "12 1 2 3\n南京 1 2 3\n")).words == ["12", "南京"]


def test_byte_order_mark_and_windows_line_ends_are_dropped(tmp_path):
    assert read_words(write(tmp_path, b"\xef\xbb\xbf" + "南京\r\n长江\r\n".encode())).words == ["南京", "长江"]


@pytest.mark.parametrize("end", ["", "\r", "\n", "\r\n"])
def test_lines_may_end_with_cr_alone(tmp_path, end):
    data = f"\ufeff# our words\r贺兰草,PRODUCT\r\r沙葱,PRODUCT\r!{end}".encode()
    found = read_words(write(tmp_path, data, "w.csv"), spaces=True)
    assert (found.words, found.report.n_comments) == (["贺兰草", "沙葱"], 1)
    assert [refusal.line for refusal in found.report.refused] == [5]
    found = read_words(write(tmp_path, "贺\r兰\n沙葱\n".encode()))
    assert (found.words, found.report.n_refused) == (["沙葱"], 1)  # one in the middle of a line is no end


def test_each_bad_line_is_refused_with_its_number_and_the_rest_is_taken(tmp_path):
    lines = [
        "南京".encode(),
        b"",
        "市".encode(),
        "南京".encode(),
        b"\xc4\xcf",  # GB18030
        "长江 大桥".encode(),
        ("长" * 65).encode(),
        "长\x00江".encode(),
        "长\ufffd江".encode(),
        "  长江 ".encode(),
        "ＡＢ".encode(),
    ]
    found = read_words(write(tmp_path, b"\n".join(lines)))
    assert found.words == ["南京", "长江", "AB"]
    reasons = {refusal.line: refusal.reason for refusal in found.report.refused}
    assert reasons == {
        3: "single character",
        4: "duplicate",
        5: "not UTF-8",
        6: "whitespace inside",
        7: "longer than 64 characters",
        8: "control character or line separator",
        9: "character that cannot be encoded (U+FFFD or a lone surrogate)",
    }
    assert (found.report.n_taken, found.report.n_refused, found.report.n_duplicates) == (3, 7, 1)
    assert found.report.refused[2].text == "\\xc4\\xcf"


def test_words_that_fold_to_the_same_word_are_duplicates(tmp_path):
    found = read_words(write(tmp_path, "A股市场\nＡ股市场\n"))
    assert found.words == ["A股市场"]
    assert found.report.refused == ((2, "A股市场", "duplicate"),)


def test_report_prints_totals_reasons_and_the_first_ten(tmp_path):
    report = read_words(write(tmp_path, "南京\n" + "市\n" * 15)).report
    text = str(report)
    assert "1 taken, 15 refused" in text
    assert "15 x single character (characters are read without a list; to force or block one, give" in text
    assert "line 11: '市': single character" in text and "line 12:" not in text
    assert "... and 5 more" in text


def test_min_count_skips_and_says_so(tmp_path):
    found = read_words(write(tmp_path, FORMS["counts"]), min_count=7)
    assert (found.words, found.counts) == (["南京", "南京市"], [12, 7])
    assert (found.report.n_taken, found.report.n_skipped, found.report.n_refused) == (2, 1, 0)
    assert "1 not needed" in str(found.report)


def test_min_count_without_counts_is_an_error(tmp_path):
    with pytest.raises(LexiconError, match="no counts"):
        read_words(write(tmp_path, FORMS["list"]), min_count=2)


def test_a_line_without_its_count_is_refused(tmp_path):
    found = read_words(write(tmp_path, "南京\t12\n长江\n大桥\tmany\n南京市\t3\n"))
    assert found.words == ["南京", "南京市"]
    assert [refusal[::2] for refusal in found.report.refused] == [
        (2, "count missing or not a whole number"),
        (3, "count missing or not a whole number"),
    ]


def test_a_vector_line_of_another_width_is_refused(tmp_path):
    found = read_words(write(tmp_path, "南京 1 2 3\n长江 1 2\n大桥 1 2 3\n"))
    assert found.words == ["南京", "大桥"]
    assert found.report.refused == ((2, "长江", "wrong number of columns for a vector"),)


def test_users_words_may_hold_spaces_and_digits(tmp_path):
    path = write(tmp_path, "iPhone 15 Pro\niPhone 15\niPhone 16\n")
    assert read_words(path, spaces=True).words == ["iPhone 15 Pro", "iPhone 15", "iPhone 16"]
    assert detect_format([b"iPhone 15", b"iPhone 16"]) == "pairs"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("南京\n长江\n".encode("gb18030"), "line 1: not UTF-8.*GB18030"),
        ("南京\n".encode("utf-16"), "line 1: this is UTF-16.*iconv -f UTF-16"),
        (
            b"PK\x03\x04\x14\0\n\xff\n",
            r"line 1: this is a ZIP archive or an Office file \(.docx, .xlsx\); save its text",
        ),
        (gzip.compress("南京\n".encode() * 1000, mtime=0)[:-12], "damaged or truncated"),
        (lzma.compress(b"".join(f"{i} x\n".encode() for i in range(99_999)))[:-40], "after line .*truncated"),
        (b"\x1f\x8bnot gzip at all", "damaged or truncated"),
    ],
)
def test_files_that_cannot_be_decoded(tmp_path, data, message):
    path = write(tmp_path, data)
    with pytest.raises(LexiconError, match=message) as caught:
        read_words(path)
    assert str(path) in str(caught.value)


def test_missing_file_folder_and_unknown_format(tmp_path):
    with pytest.raises(LexiconError, match=r"nowhere\.txt: cannot be read"):
        read_words(tmp_path / "nowhere.txt")
    with pytest.raises(LexiconError, match="cannot be read"):
        read_words(tmp_path)
    with pytest.raises(LexiconError, match="expected one of auto, list, counts"):
        read_words(write(tmp_path, "南京\n"), format="yaml")


def test_an_empty_file_gives_no_words(tmp_path):
    found = read_words(write(tmp_path, b""))
    assert (found.words, found.report.n_taken, found.report.n_refused) == ([], 0, 0)


def test_a_pipe_is_refused_and_not_read_as_empty(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(LexiconError, match="a pipe or device; expected a file"):
        read_words(pipe)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.csv", "\ufeff词,类型\r\n贺兰草,产品\r\n小红书,品牌\r\n", [("贺兰草", "产品"), ("小红书", "品牌")]),
        ("a.CSV", "贺兰草,产品\n小红书,品牌\n", [("贺兰草", "产品"), ("小红书", "品牌")]),
        ("a.txt", "贺兰草,产品\n小红书,品牌\n", [("贺兰草,产品", None), ("小红书,品牌", None)]),
        ("a.txt", "名称\t类型\n贺兰草\tPRODUCT\n", [("贺兰草", "PRODUCT")]),
        ("a.csv", "name,type\n贺兰草,PRODUCT\n", [("贺兰草", "PRODUCT")]),
        ("a.txt", "贺兰草\tPRODUCT # ours\n小红书\t# an app\n", [("贺兰草", "PRODUCT"), ("小红书", None)]),
        ("a.txt", "贺兰草 # ours\nC# 7\n", [("贺兰草", None), ("C# 7", None)]),
        ("a.txt", "贺兰草\n\ufeff小\u200b红书\n美团\u200b\n", [("贺兰草", None), ("小红书", None), ("美团", None)]),
    ],
)  # fmt: skip
def test_files_as_spreadsheets_and_people_write_them(tmp_path, name, content, expected):
    (tmp_path / name).write_text(content, encoding="utf-8", newline="")
    found = read_words(tmp_path / name, spaces=True)
    assert [(word.text, word.label) for word in found.user_words] == expected
    assert found.report.n_refused == 0


def test_a_file_named_jsonl_is_json_lines_however_many_are_wrong(tmp_path):
    (tmp_path / "words.jsonl").write_text(
        '{"word": "贺兰草", "label": "ORG"}\nnot json\n{"label": "X"}\n[1]\n}\n' + f'"{"长" * 80}"\n', encoding="utf-8"
    )
    read = read_words(tmp_path / "words.jsonl", spaces=True)
    assert [(word.text, word.label) for word in read.user_words] == [("贺兰草", "ORG")]
    assert read.report.format == "jsonl" and read.report.reasons == {NO_OBJECT: 5}


def test_a_parquet_file_is_no_text(tmp_path):
    (tmp_path / "words.parquet").write_bytes(b"PAR1\x15\x04words\n\x00PAR1")
    with pytest.raises(LexiconError, match="this is a Parquet file; save its text as a file in UTF-8"):
        read_words(tmp_path / "words.parquet", spaces=True)


@pytest.mark.parametrize("content", ['[{"word": "贺兰草"}]', '[\n  {"word": "贺兰草"}\n]\n', '["贺兰草", "小红书"]'])
def test_a_json_array_is_refused_with_the_way_to_convert_it(tmp_path, content):
    (tmp_path / "words.json").write_text(content, encoding="utf-8")
    with pytest.raises(LexiconError, match=r"JSON array; expected one JSON object .* per line"):
        read_words(tmp_path / "words.json", spaces=True)


@pytest.mark.parametrize(
    ("lines", "header"),
    [
        (["2 3", "甲乙 1 2 3"], (2, 3)),
        (["0 5"], (0, 5)),
        (["1 5"], None),  # a word that is a number, with a count
        ([], None),
        (["2 3 4", "甲乙 1 2 3"], None),
        (["2", "甲乙 1 2"], None),
        (["甲乙 3", "丙丁 1 2 3"], None),
        (["2 甲乙", "丙丁 1 2 3"], None),
        (["2 1", "甲乙 1"], None),  # a width of 1 is a count
        (["2 2", "甲乙 1 2"], (2, 2)),
        (["2 4", "甲乙 1 2 3"], None),  # fewer numbers than the header says
        (["2 3", "甲乙 1 2 x"], None),
    ],
)
def test_the_header_of_vectors(lines, header):
    assert is_header([line.encode() for line in lines]) == header


def test_the_report_names_the_columns_that_were_not_read(tmp_path):
    table = "编号,词,类型,别名,权重,\n7,毕利书柜,PRODUCT,毕利,3,\n"
    report = read_words(write(tmp_path, table, "a.csv"), spaces=True).report
    assert report.ignored_columns == ("编号", "别名", "权重") and not report.is_incomplete
    assert "columns that were not read: 编号, 别名, 权重 (those that are: word" in str(report)
    table = "词,类型\n毕利书柜,PRODUCT\n"
    assert "not read" not in str(read_words(write(tmp_path, table, "b.csv"), spaces=True).report)


def test_words_of_a_user_that_differ_by_the_width_of_marks_are_duplicates(tmp_path):
    path = write(tmp_path, "西门子（中国）\n西门子(中国)\n")
    found = read_words(path, spaces=True)
    assert found.words == ["西门子(中国)"] and found.report.reasons == {"duplicate": 1}
    of_model = read_words(path, spaces=True, pairs=True)
    assert of_model.words == ["西门子（中国）", "西门子(中国)"], "the words of a model are those of its vectors"


def test_duplicates_do_not_hide_other_refused_lines_from_the_report(tmp_path):
    lines = ["南京", *["南京"] * 50, "市", *["南京"] * 50, "长\x00江", "市"]
    shown = str(read_words(write(tmp_path, "\n".join(lines))).report).splitlines()
    assert [line for line in shown if line.startswith("  line ") and "duplicate" not in line] == [
        "  line 52: '市': single character",
        "  line 103: '长\\x00江': control character or line separator",
        "  line 104: '市': single character",
    ]
    assert shown[4].startswith("  line 2: ") and shown[-1] == "  ... and 93 more"
