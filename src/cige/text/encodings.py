"""Detect the encoding of bytes that are not UTF-8, for error messages with the command that converts the file."""

from __future__ import annotations

UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_NO_TEXT = {  # how files of other programs begin, and what they are
    b"PK\x03\x04": "this is a ZIP archive or an Office file (.docx, .xlsx)",
    b"\xd0\xcf\x11\xe0": "this is an Office file (.doc, .xls)",
    b"%PDF": "this is a PDF file",
    b"PAR1": "this is a Parquet file",
    b"\x1f\x8b": "this is a compressed file (.gz)",
    b"\xfd7zXZ\x00": "this is a compressed file (.xz)",
    b"\x28\xb5\x2f\xfd": "this is a compressed file (.zst)",
    b"BZh91AY&SY": "this is a compressed file (.bz2)",
    b"\x89PNG": "this is a picture",
    b"\xff\xd8\xff": "this is a picture",
}


def is_utf16(start: bytes) -> bool:
    """Whether the first bytes of a text that is not UTF-8 are UTF-16, by a byte order mark or a zero byte: UTF-16 has
    one in every line break, ASCII letter and digit, and no other encoding of Chinese has any."""
    return start.startswith(UTF16_MARKS) or b"\0" in start


def is_no_text(start: bytes) -> bool:
    """Whether a file that begins with these bytes is one of another program, such as a table of Excel."""
    return start.startswith(tuple(_NO_TEXT))


def how_to_convert(start: bytes) -> str:
    """The end of an error message about bytes that are not UTF-8, with advice; `start` has the first bytes of the file,
    and then the line with the first wrong byte, or more."""
    for mark, kind in _NO_TEXT.items():
        if start.startswith(mark):
            return f"{kind}; save its text as a file in UTF-8"
    if is_utf16(start):
        return "this is UTF-16; save the file as UTF-8, for instance with iconv -f UTF-16 -t UTF-8"
    return "save the file as UTF-8, for instance with iconv -f GB18030 -t UTF-8 if it is GBK"
