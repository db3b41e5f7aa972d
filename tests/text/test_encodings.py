"""Advice for files that are not UTF-8."""

import bz2
import io
import zipfile

import pytest

from cige.cli import main
from cige.text.encodings import how_to_convert


def office_file() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", "<w>李明在北京</w>" * 99)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("name", "raw", "said"),
    [
        ("a.docx", office_file(), "Office file"),
        ("a.pdf", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n\0\0", "PDF"),
        ("a.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99), "Office file"),
        ("a.bz2", bz2.compress("李明在北京。\n".encode() * 9), "compressed file (.bz2)"),
        ("a.zst", b"\x28\xb5\x2f\xfd\x24\x13\0\0", "compressed file (.zst)"),
        ("a.png", b"\x89PNG\r\n\x1a\n\0\0", "picture"),
    ],
)
def test_files_of_other_programs_are_not_called_utf_16(tmp_path, capsys, name, raw, said):
    """They have zero bytes like UTF-16, but iconv would not help."""
    (tmp_path / name).write_bytes(raw)
    for command in (["predict", str(tmp_path / name)], ["evaluate", "--data", str(tmp_path / name)]):
        assert main(command) == 2
        error = capsys.readouterr().err
        assert said in error and "iconv" not in error and "UTF-16" not in error


def test_encodings_of_text():
    assert "UTF-16" in how_to_convert("李明\n".encode("utf-16"))
    assert "UTF-16" in how_to_convert("李明\n".encode("utf-16-le")) and "GB18030" in how_to_convert("李".encode("gbk"))
