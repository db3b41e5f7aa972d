"""Lines of a corpus: what is text and what is not."""

import gzip
import lzma

import pytest

from cige.errors import LexiconError
from cige.lexicon.text_file import SoundLines


def write(tmp_path, content: bytes):
    path = tmp_path / "corpus"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_lines_with_their_numbers(tmp_path, pack):
    lines = SoundLines(write(tmp_path, pack("\ufeff南京\r\n\n长\u2028江".encode())))
    assert list(lines) == [(1, "南京"), (2, ""), (3, "长\u2028江")]
    assert (lines.n_lines, lines.n_bad, lines.bad_lines) == (3, 0, [])


def test_a_few_bad_lines_are_left_out_and_counted(tmp_path):
    good = "南京\n".encode() * 500
    lines = SoundLines(write(tmp_path, good + b"\xff\xfe\x80junk\n" + b"a\0b\n" + good))
    assert {text for _, text in lines} == {"南京"}
    assert (lines.n_lines, lines.n_bad) == (1002, 2)
    assert lines.bad_lines == [r"line 501: \xff\xfe\x80junk", "line 502: a\0b"]


def test_one_bad_line_of_a_short_file_costs_itself(tmp_path):
    lines = SoundLines(write(tmp_path, "南京\n\n".encode() + b"\xff\n"))
    assert [text for _, text in lines] == ["南京", ""] and lines.n_bad == 1


@pytest.mark.parametrize(
    "content",
    [bytes(range(256)) * 400, "南京市\n".encode("gb18030") * 5000, b"\xff", b"\0" * 10_000, b"\xff\xfe\x57\x53"],
)
def test_what_is_no_text_is_refused(tmp_path, content):
    with pytest.raises(LexiconError, match=r"corpus.* (lines are not UTF-8 text|UTF-16)"):
        list(SoundLines(write(tmp_path, content)))


def test_a_file_that_is_mostly_junk_is_refused_early(tmp_path):
    lines = SoundLines(write(tmp_path, b"\xff\n" * 100_000))
    with pytest.raises(LexiconError, match="11 of the first 11 lines"):
        list(lines)
    assert lines.n_lines == 11


def test_a_missing_file(tmp_path):
    with pytest.raises(LexiconError, match=r"nowhere\.txt: cannot be read"):
        list(SoundLines(tmp_path / "nowhere.txt"))
