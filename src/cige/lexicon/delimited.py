"""Rows of delimited text as spreadsheets write it: cells in quotes may have delimiters and line breaks in them."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import islice

MAX_ROW_LINES = 100  # of one row; a quote that is open for longer was forgotten


def cells_of(row: str, delimiter: str, *, quotes: bool = True) -> list[str]:
    """The cells of a row, without blanks around them; with `quotes`, cells may be in quotes."""
    return [cell.strip() for cell in row.split(delimiter)] if not quotes else parsed_row(row, delimiter)[0]


def parsed_row(row: str, delimiter: str) -> tuple[list[str], bool]:
    """The cells of a row, without blanks around them, and whether a cell in quotes does not end in this row."""
    if '"' not in row:
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
        try:
            n_lines = _n_lines((_decoded(raw) for _, raw in (first, *ahead)), delimiter)
        except csv.Error:
            n_lines = None
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


def _n_lines(lines: Iterator[str], delimiter: str) -> int | None:
    """How many of the lines are the first row; None if a quote is not closed.

    Raises:
        csv.Error: a quote is not closed, or is closed in the middle of a cell.
    """
    n_lines = 0

    def counted() -> Iterator[str]:
        nonlocal n_lines
        for line in lines:
            n_lines += 1
            yield line + "\n"
        n_lines = -1

    next(csv.reader(counted(), delimiter=delimiter, skipinitialspace=True, strict=True), None)
    return n_lines if n_lines > 0 else None


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
