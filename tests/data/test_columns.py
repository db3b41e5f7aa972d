"""Column files: what is read, what is refused and where, and that writing loses nothing."""

import gzip
import lzma

import pytest
from disks import full_disk
from hypothesis import given, settings
from hypothesis import strategies as st

from cige.data import RepairWarning, Sentence, Span, read_labelled, read_sentences, write_sentences
from cige.data.columns import format_columns, parse_columns
from cige.errors import DataError

TEXT = "张 B-PER\n三 E-PER\n在 O\n沪 S-LOC\n\n# O\n好 O\n"
SENTENCES = [
    Sentence("张三在沪", (Span(0, 2, "PER"), Span(3, 4, "LOC")), 1),
    Sentence("#好", (), 6),
]


def put(folder, text, name="data.bmes"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_sentences_have_text_spans_and_the_line_where_they_begin(tmp_path):
    assert read_sentences(put(tmp_path, TEXT)) == SENTENCES


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace(" ", "\t"),
        TEXT.replace("\n", "\r\n"),
        "\ufeff" + TEXT,
        TEXT.rstrip("\n"),
        TEXT.replace(" ", " \t "),
        TEXT.replace("\n\n", "\n \t\n"),
    ],
    ids=["tabs", "crlf", "bom", "no last line feed", "wide separator", "blank line with blanks"],
)
def test_harmless_differences_are_tolerated(tmp_path, text):
    assert read_sentences(put(tmp_path, text)) == SENTENCES


def test_packed_files_are_read_and_written(tmp_path):
    assert read_sentences(put(tmp_path, gzip.compress(TEXT.encode()), "a.bmes.gz")) == SENTENCES
    assert read_sentences(put(tmp_path, lzma.compress(TEXT.encode()), "a.bmes.xz")) == SENTENCES
    for name in ("b.bmes.gz", "b.bio.xz"):
        write_sentences(tmp_path / name, SENTENCES)
        assert [s.spans for s in read_sentences(tmp_path / name)] == [s.spans for s in SENTENCES]
    with pytest.raises(DataError, match=r"c\.bmes\.xz is damaged"):
        read_sentences(put(tmp_path, lzma.compress(TEXT.encode())[:-20], "c.bmes.xz"))


def test_a_space_may_be_written_as_it_is_or_as_an_open_box(tmp_path):
    text = "h B-HP\n␣ M-HP\nk M-HP\n  M-HP\ny E-HP\n\t O\n\u3000\tO\n"
    (sentence,) = read_sentences(put(tmp_path, text))
    assert sentence == Sentence("h k y\t\u3000", (Span(0, 5, "HP"),), 1)


def test_characters_that_some_call_line_ends_are_characters(tmp_path):
    (sentence,) = read_sentences(put(tmp_path, "\x85 O\n\u2028 O\n\x0b O\n\x1c O\n"))
    assert sentence.text == "\x85\u2028\x0b\x1c"


def test_a_token_of_several_characters_is_taken_apart(tmp_path):
    text = "2020 B-T\n年 E-T\n在 O\nIBM S-ORG\n👩‍🚀 O\nOK I-X\n"
    (sentence,) = read_sentences(put(tmp_path, text.replace("OK I-X\n", "")))
    assert sentence.text == "2020年在IBM👩‍🚀"
    assert sentence.spans == (Span(0, 5, "T"), Span(6, 9, "ORG"))
    (sentence,) = read_sentences(put(tmp_path, "New B-LOC\nYork I-LOC\nx O\n"))
    assert sentence.spans == (Span(0, 7, "LOC"),)


@pytest.mark.parametrize(
    ("tags", "format"),
    [
        ("B-A M-A E-A O", "bmes"),
        ("B-A I-A E-A O", "bioes"),
        ("B-A I-A I-A S-A", "bioes"),
        ("B-A I-A I-A O", "bio"),
        ("B-A B-A O O", "bio"),  # fits all three; a B alone is legal in BIO only
        ("B-A E-A S-A O", "bmes"),
        ("O O O O", "bio"),
    ],
)
def test_the_scheme_is_told_from_the_tags(tmp_path, tags, format):
    text = "".join(f"字 {tag}\n" for tag in tags.split())
    assert read_labelled(put(tmp_path, text), repair=True).format == format


@pytest.mark.parametrize(
    ("text", "format", "message"),
    [
        ("张 O\n三\n", "auto", r"line 2: expected a character and a tag, found 1 column in '三'"),
        ("张 NN O\n", "auto", r"line 1: .* found 3 columns"),
        (" 张 O\n", "auto", r"line 1: .*column"),
        ("张 O\n\n三 X-PER\n", "auto", r"line 3: unknown tag 'X-PER'"),
        ("张 B\n", "auto", r"line 1: unknown tag 'B'"),
        ("张 B-A\n三 M-A\n四 E-A\n\n五 B-A\n六 I-A\n", "auto", "M- on line 2 and I- on line 6"),
        ("张 O\n三 I-A\n", "bmes", r"line 2: unknown tag 'I-A'.*BMES"),
        ("张 O\n三 E-A\n", "bmes", r"line 2: E-A must follow B-A or M-A; correct"),
        ("张 S-A\n三 B-A\n\n四 O\n", "auto", r"line 2: B-A must be followed by M-A or E-A"),
        ("张 I-A\n三 O\n\n四 I-A\n", "auto", r"line 1: .*the first of 2 such lines.*repair=True"),
        ("张 O\n".encode() + "三 O\n".encode("gb18030"), "auto", r"line 2: byte 0xc8 is not UTF-8"),
        (b"\xef\xbb\xbf" + "张 O\n\n".encode() + b"\xff O\n", "auto", r"line 3: byte 0xff"),
        ("张 O\n".encode("utf-16"), "auto", "UTF-16"),
        ("", "auto", "contains no sentence"),
        (" \n\n", "bmes", "contains no sentence"),
    ],
)
def test_bad_files_are_refused_by_line(tmp_path, text, format, message):
    path = put(tmp_path, text)
    with pytest.raises(DataError, match=message) as caught:
        read_sentences(path, format=format)
    assert str(path) in str(caught.value)


def test_missing_files_folders_and_formats_are_named(tmp_path):
    with pytest.raises(DataError, match="no file at"):
        read_sentences(tmp_path / "absent.bmes")
    with pytest.raises(DataError, match="is a folder"):
        read_sentences(tmp_path)
    with pytest.raises(DataError, match="unknown format 'bieso'"):
        read_sentences(put(tmp_path, TEXT), format="bieso")
    with pytest.raises(DataError, match="cannot tell the format"):
        write_sentences(tmp_path / "x.dat", SENTENCES)


def test_illegal_tags_are_mended_only_on_request_and_never_silently(tmp_path):
    path = put(tmp_path, "张 I-A\n三 I-A\n\n四 O\n五 I-B\n")
    with pytest.warns(RepairWarning, match=r"2 place\(s\) repaired, the first on line 1: I-A must follow"):
        sentences = read_sentences(path, repair=True)
    assert [s.spans for s in sentences] == [(Span(0, 2, "A"),), (Span(1, 2, "B"),)]
    assert [(r.line, r.what) for r in read_labelled(path, repair=True).repairs] == [
        (1, "I-A must follow B-A or I-A"),
        (5, "I-B must follow B-B or I-B"),
    ]


@pytest.mark.filterwarnings("error")
def test_repair_changes_and_says_nothing_where_nothing_is_wrong(tmp_path):
    assert read_sentences(put(tmp_path, TEXT), repair=True) == SENTENCES


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        (Sentence(""), "empty text"),
        (Sentence("a\nb"), "line feed"),
        (Sentence("a␣b"), r"U\+2423"),
        (Sentence("ab", (Span(0, 1, "A B"),)), "whitespace"),
        (Sentence("ab", (Span(0, 2, "A"), Span(1, 2, "B"))), "overlap"),
        (Sentence("ab", (Span(0, 3, "A"),)), "does not fit"),
    ],
)
def test_what_columns_cannot_hold_is_refused_and_the_old_file_stays(tmp_path, sentence, message):
    path = put(tmp_path, TEXT)
    with pytest.raises(DataError, match=f"sentence 2.*{message}"):
        write_sentences(path, [SENTENCES[0], sentence])
    assert read_sentences(path) == SENTENCES
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_leaves_the_old_file_and_nothing_beside_it(tmp_path, monkeypatch):
    path = put(tmp_path, TEXT)

    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(DataError, match="No space left on device"):
        write_sentences(path, SENTENCES[1:])
    assert read_sentences(path) == SENTENCES
    assert list(tmp_path.iterdir()) == [path]


def test_a_lone_surrogate_cannot_be_written_as_utf8(tmp_path):
    with pytest.raises(DataError, match=r"line 2: U\+D800 is a lone surrogate"):
        write_sentences(tmp_path / "x.bmes", [Sentence("a\ud800")])


characters = st.characters(exclude_characters="\n\u2423", exclude_categories=["Cs"])


@st.composite
def sentences(draw):
    text = draw(st.text(characters, min_size=1, max_size=12) | st.text(" \t\r\x85\ufeff#a", min_size=1, max_size=6))
    cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=6)))
    pairs = list(zip(cuts[::2], cuts[1::2], strict=False))
    return Sentence(text, tuple(Span(a, b, draw(st.sampled_from(["PER", "GPE.NAM", "a-b"]))) for a, b in pairs))


@settings(max_examples=200)
@given(st.lists(sentences(), min_size=1, max_size=4), st.sampled_from(["BMES", "BIOES", "BIO"]))
def test_writing_and_reading_give_the_same_sentences(cases, scheme):
    written = format_columns(cases, scheme).encode("utf-8").decode("utf-8-sig")
    for asked in (scheme, "auto"):
        found = parse_columns(written, name="x", scheme=asked)
        assert [(s.text, s.spans) for s in found.sentences] == [(s.text, s.spans) for s in cases]


def test_real_files_come_back_byte_for_byte(shared_data, tmp_path):
    for name in ("weibo/test", "resume/dev", "ecommerce/dev", "cluener/dev"):
        source = shared_data / "ner" / f"{name}.bmes"
        write_sentences(tmp_path / "copy.bmes", read_sentences(source))
        assert (tmp_path / "copy.bmes").read_bytes() == source.read_bytes()
