"""The names that the columns of a word list have in a header, in English and Chinese."""

from __future__ import annotations

from collections.abc import Sequence

COLUMNS = ("word", "label", "mode")
HEADERS = {
    **dict.fromkeys(("word", "text", "name", "词", "词语", "名称", "名字"), "word"),
    **dict.fromkeys(("label", "type", "标签", "类型", "类别"), "label"),
    **dict.fromkeys(("mode", "模式"), "mode"),
    **dict.fromkeys(("count", "频次", "词频"), "count"),
}
_ENDS = ("名称", "名字", "词语", "name", "word")  # of the first cell of other headers: 产品名称, product_name


def column_names(cells: Sequence[str]) -> list[str]:
    """What each column is: "word", "label", "mode" or "count", or its own name if it is none of them.

    The case does not matter. Of several columns for the same, the first counts.
    """
    names: list[str] = []
    for cell in cells:
        name = HEADERS.get(cell.strip().lower(), cell)
        names.append(cell if name in names else name)
    return names


def header_columns(cells: Sequence[str]) -> list[str] | None:
    """The names of the columns if a row is a header: it names the words, and at least one of the others."""
    names = column_names(cells)
    return names if "word" in names and {"label", "mode", "count"} & set(names) else None


def looks_like_header(cells: Sequence[str]) -> bool:
    """Whether the first row of a table is a header that `header_columns` does not understand.

    Either a column after the first has one of the names in HEADERS, or the first one ends like a name of words and what
    stands beside it is not a label in capital letters.
    """
    if len(cells) < 2:
        return False
    if any(cell.lower() in HEADERS for cell in cells[1:]):
        return True
    first = cells[0].lower()
    is_name = HEADERS.get(first) == "word" or first.endswith(_ENDS)
    return is_name and bool(cells[1]) and not (cells[1].isascii() and cells[1].isupper())
