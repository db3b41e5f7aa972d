"""Rows of delimited text as spreadsheets write it: cells in quotes, numbers, and the names of columns."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from cige.text.normalize import without_invisible

MAX_ROW_LINES = 100  # of one row; a quote that is open for longer was forgotten
# What the columns of a word list are called in a header, in English and Chinese.
COLUMNS = ("word", "label", "mode")
HEADERS = {
    **dict.fromkeys(("word", "text", "name", "词", "词语", "名称", "名字"), "word"),
    **dict.fromkeys(("label", "type", "标签", "类型", "类别"), "label"),
    **dict.fromkeys(("mode", "模式"), "mode"),
    **dict.fromkeys(("count", "频次", "词频"), "count"),
}
# What else a column of words is called: 企业名称, 客户姓名, product_name. Words rarely end so (but 你的名字 is one).
_NAMES_WORDS = re.compile(r"\w{0,10}(名称|姓名)|\w{1,20}_name")
_ENDS = ("名称", "名字", "姓名", "词语", "name", "word")  # of the first cell of other headers: 产品名称, product_name
MAX_DIGITS = 18
MAX_NUMBER = 10**MAX_DIGITS - 1
_NUMBER = re.compile(r"[+-]?(\d[\d,]*\.?\d*|\.\d+)([eE][+-]?\d+)?")
_MARKS = tuple(mark.encode("utf-8") for mark in (",", ";", "\t", "|", "，", "；"))
_DECLARED = re.compile(r'sep *= *(\\t|\t|[^\w\s"])', re.IGNORECASE)
_WHOLE = re.compile(r"(\d+|\d{1,3}(?:,\d{3})+)(?:\.0*)?")


def cells_of(row: str, delimiter: str, *, quotes: bool = True) -> list[str]:
    """The cells of a row, without blanks around them; with `quotes`, cells may be in quotes."""
    return parsed_row(row, delimiter, quotes=quotes)[0]


def parsed_row(row: str, delimiter: str, *, quotes: bool = True) -> tuple[list[str], bool]:
    """The cells of a row, as `cells_of`, and whether a cell in quotes does not end in this row."""
    if not quotes or '"' not in row:
        return [cell.strip() for cell in row.split(delimiter)], False
    lines = iter((row + "\n", ""))  # the reader asks for the second one only if a quote is open
    try:
        cells = next(csv.reader(lines, delimiter=delimiter, skipinitialspace=True), [""])
    except csv.Error:  # a cell that is too long for the reader
        return [row.strip()], False
    return [cell.strip() for cell in cells], next(lines, None) is None


def joined_rows(lines: Iterator[tuple[int, bytes]], delimiter: str) -> Iterator[tuple[int, bytes]]:
    """Join the lines of each row whose quoted cells have line breaks; it has the number of its first line.

    A line whose quote is not closed within MAX_ROW_LINES, or is closed in the middle of a cell as by the quote of a
    later row, stays as it is, and so do the lines after it. Comments (#) begin no row.
    """
    ahead: list[tuple[int, bytes]] = []
    while True:
        first = ahead.pop(0) if ahead else next(lines, None)
        if first is None:
            return
        if (
            b'"' not in first[1]
            or first[1].lstrip().startswith(b"#")
            or not parsed_row(_decoded(first[1]), delimiter)[1]
        ):
            yield first
            continue
        ahead += islice(lines, MAX_ROW_LINES - 1 - len(ahead))
        n_lines = _n_lines((_decoded(raw) for _, raw in (first, *ahead)), delimiter)
        if n_lines is None:
            yield first
            continue
        yield first[0], b"\n".join(raw for _, raw in (first, *ahead[: n_lines - 1]))
        del ahead[: n_lines - 1]


def other_delimiter(lines: Sequence[bytes]) -> str | None:
    """The delimiter of a .csv file if every one of its first lines has it and none has a comma, or None.

    Spreadsheets write semicolons where the comma is the decimal mark, and people write the comma of Chinese.
    """
    if not lines or any(b"," in raw for raw in lines):
        return None
    return next((mark for mark in (";", "，", "；") if all(mark.encode("utf-8") in raw for raw in lines)), None)


def declared_delimiter(line: bytes) -> str | None:
    """The delimiter in a line such as `sep=;`, with which files tell it to Excel, or None if it is another line.

    A tab may also be written as `\\t`. Empty cells may follow, as in `sep=;,,`.
    """
    text = _decoded(line).lstrip(' \t"\ufeff')
    match = _DECLARED.match(text)
    if match is None:
        return None
    mark = match[1].replace("\\t", "\t")
    # behind it may stand the separators of the empty cells with which a spreadsheet fills the row
    return None if text[match.end() :].strip(f'{mark} \t\r,;|，；"') else mark


def has_another_delimiter(lines: Sequence[bytes], declared: str) -> bool:
    """Whether none of the lines has the delimiter that their file declares, but most have another one."""
    if any(declared.encode("utf-8") in raw for raw in lines):
        return False
    return 2 * sum(any(mark in raw for mark in _MARKS) for raw in lines) > len(lines)


def _n_lines(lines: Iterable[str], delimiter: str) -> int | None:
    """How many of the lines are the first row; None if a quote is not closed, or is closed in the middle of a cell."""
    reader = csv.reader((line + "\n" for line in lines), delimiter=delimiter, skipinitialspace=True, strict=True)
    try:
        next(reader, None)
    except csv.Error:
        return None
    return reader.line_num


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def column_names(cells: Sequence[str], *, is_header: bool = False) -> list[str]:
    """What each column is: "word", "label", "mode" or "count", or its own name if it is none of them.

    The case does not matter. Of several columns for the same, the one with this very name counts, or else the first.
    Where none has a name of words, the only one that ends in 名称, 姓名 or _name is it, if the row can be a header.

    Args:
        is_header: whether these are known to be names of columns.
    """
    written = [without_invisible(cell).strip().lower() for cell in cells]
    names = list(cells)
    for name in dict.fromkeys(HEADERS.values()):
        places = [k for k, cell in enumerate(written) if HEADERS.get(cell) == name]
        for rank, k in enumerate(sorted(places, key=lambda k: written[k] != name)):
            if rank == 0:
                names[k] = name
            elif written[k] == name:
                names[k] = f"{cells[k]} (again)"
    if "word" not in names:
        named = [k for k, cell in enumerate(written) if _NAMES_WORDS.fullmatch(cell)]
        if len(named) == 1 and (is_header or named[0] == 0 or _is_wide(cells)):
            names[named[0]] = "word"
    return names


def _is_wide(cells: Sequence[str]) -> bool:
    """Whether a row is no word with its label, such as 公司名称, and its mode."""
    return len(cells) > len(COLUMNS) or not "".join(cells[2:]).isascii()


def header_columns(cells: Sequence[str]) -> list[str] | None:
    """The names of the columns if a row is a header: it names the words, and at least one of the others."""
    names = column_names(cells)
    return names if "word" in names and {"label", "mode", "count"} & set(names) else None


def looks_like_header(cells: Sequence[str]) -> bool:
    """Whether the first row of a table is a header that `header_columns` does not understand: a column after the first
    has one of the names in HEADERS, or the first one ends like a name of words and what stands beside it is not a label
    in capital letters. In the third place after such a label, `type` is a mode."""
    if len(cells) < 2:
        return False
    has_label = cells[1].isascii() and cells[1].isupper()
    named = cells[1:2] if has_label and cells[2:] == ["type"] else cells[1:]
    if any(cell.lower() in HEADERS for cell in named):
        return True
    first = without_invisible(cells[0]).strip().lower()
    if "word" in column_names(cells) and _is_wide(cells):
        return True
    is_name = HEADERS.get(first) == "word" or first.endswith(_ENDS)
    return is_name and bool(cells[1]) and not has_label


def whole_number(field: bytes | str) -> int | None:
    """The whole number in a field; None if it is not a number or has more than 18 digits."""
    is_number = field.isdigit() if isinstance(field, bytes) else field.isdecimal()
    return int(field) if is_number and len(field) <= MAX_DIGITS else None


def count_in(field: bytes | str) -> int | None:
    """Like `whole_number`, also as programs write tables: `12.0` (pandas, in a column with empty cells) and `1,000`."""
    number = whole_number(field)
    if number is not None or len(field) <= 2:
        return number
    match = _WHOLE.fullmatch(field.decode("latin-1") if isinstance(field, bytes) else field)
    return None if match is None else whole_number(match[1].replace(",", ""))


def is_number(field: str) -> bool:
    """Whether a field is a number of any form, such as `12`, `3.5`, `1,000`, `-1` or `1e5`."""
    return _NUMBER.fullmatch(field) is not None
