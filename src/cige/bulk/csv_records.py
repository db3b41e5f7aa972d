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
