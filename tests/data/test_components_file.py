"""The file of a table of components: what is read, and which lines are refused by number."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from cige.data.components import MAX_COMPONENTS, read_components
from cige.errors import LexiconError


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "components.tsv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_characters_and_their_components_in_order(tmp_path):
    path = written(tmp_path, "# a table of ours\n河\t氵 可\n\n#\n鑫\t金  金 金\r\n#\t井\n𠮷\t士 口\t\n中\t85")
    assert read_components(path) == {
        "河": ("氵", "可"),
        "鑫": ("金", "金", "金"),
        "#": ("井",),
        "𠮷": ("士", "口"),
        "中": ("85",),
    }


def test_a_compressed_file_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "components.tsv.gz"
    path.write_bytes(gzip.compress("\ufeff河\t氵 可\n".encode()))
    assert read_components(path) == {"河": ("氵", "可")}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("河 氵 可", "no tab"),
        ("河流\t氵 可", "2 characters before the tab, expected one"),
        ("\t氵 可", "0 characters before the tab"),
        (" \t氵", "before the tab"),
        ("河\t", "no component after the tab"),
        ("河\t  ", "no component after the tab"),
        ("河\t氵 可\t水 可", "more than two columns"),
        ("河\t" + "一 " * (MAX_COMPONENTS + 1), f"{MAX_COMPONENTS + 1} components, expected at most"),
        ("明\t日", r"given again, after line 1; expected one line"),
    ],
)
def test_a_line_of_another_form_is_refused_with_its_number(tmp_path, line, reason):
    path = written(tmp_path, f"明\t日 月\n\n{line}\n")
    with pytest.raises(LexiconError, match=reason) as refused:
        read_components(path)
    assert f"{path}, line 3: " in str(refused.value)


def test_bytes_that_are_not_utf_8(tmp_path):
    path = written(tmp_path, "明\t日 月\n".encode() + "河\t水".encode("gb18030"))
    with pytest.raises(LexiconError, match="line 2: not UTF-8"):
        read_components(path)


@pytest.mark.parametrize("content", ["", "# nothing\n\n"])
def test_a_file_without_characters(tmp_path, content):
    with pytest.raises(LexiconError, match="no character with components; expected a character, a tab"):
        read_components(written(tmp_path, content))


def test_no_file(tmp_path):
    with pytest.raises(LexiconError, match="cannot be read"):
        read_components(tmp_path / "none.tsv")
