"""Records of CSV and TSV text."""

from __future__ import annotations

import csv
import io


def csv_records(text: str, form: str) -> list[list[str]]:
    """The records of CSV or TSV text. Fields of TSV end at tabs and line ends, and quotes have no meaning in them."""
    if form == "tsv":
        lines = text.removesuffix("\n").split("\n")
        return [fields if (fields := line.removesuffix("\r").split("\t")) != [""] else [] for line in lines]
    csv.field_size_limit(1 << 30)
    return list(csv.reader(io.StringIO(text, newline="")))


def has_open_quote(text: str) -> bool:
    """Whether CSV text ends within a quoted field."""
    if text.count('"') % 2 == 0:
        return False
    try:
        for _ in csv.reader(io.StringIO(text, newline=""), strict=True):
            pass
    except csv.Error as reason:
        return "unexpected end of data" in str(reason)
    return False
