"""Reading word lists: one word a line, words with counts, or word2vec text; every refused line is reported."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice

from cige.errors import LexiconError
from cige.lexicon.report import LoadReport, ReportBuilder
from cige.lexicon.text_file import read_lines, shown
from cige.lexicon.word_rules import DUPLICATE, NOT_UTF8, reason_to_refuse
from cige.text.normalize import normalize

FORMATS = ("auto", "list", "counts", "pairs", "word2vec")
NO_COUNT = "count missing or not a whole number"
NO_VECTOR = "wrong number of columns for a vector"
N_SAMPLE = 200


@dataclass(frozen=True)
class WordList:
    """Distinct words, normalised, in file order.

    Attributes:
        words: the words.
        counts: one count a word, or None when the file has none.
        report: what was taken and what was refused.
    """

    words: list[str]
    counts: list[int] | None
    report: LoadReport


def read_words(
    path: str | os.PathLike[str], *, format: str = "auto", min_count: int = 0, spaces: bool = False
) -> WordList:
    """Read a word list, plain or .gz or .xz.

    Args:
        path: the file, UTF-8.
        format: "list" (one word a line), "counts" (word<TAB>count, more columns ignored), "pairs" (`word count`
            parted by spaces, more columns ignored), "word2vec" (`word v1 ... vD`, header line optional), or "auto".
        min_count: words with a smaller count are skipped; needs a file with counts.
        spaces: words may hold blanks, as in "iPhone 15 Pro"; "auto" then never guesses "pairs".

    Raises:
        LexiconError: the file cannot be read, most of it is not UTF-8, or the format is unknown. One bad line never
            costs the others: it is refused in the report.
    """
    if format not in FORMATS:
        raise LexiconError(f"format {format!r}: expected one of {', '.join(FORMATS)}")
    lines = read_lines(path)
    sample = list(islice(lines, N_SAMPLE))
    if format == "auto":
        format = detect_format([raw for _, raw in sample], spaces=spaces)
    if min_count > 1 and format in ("list", "word2vec"):
        raise LexiconError(f"{path}: read as {format!r}, which has no counts, so min_count={min_count} cannot hold")
    report = ReportBuilder(source=str(path), format=format)
    found: dict[str, int] = {}
    n_lines = 0
    for line, raw, count, problem in _entries(chain(sample, lines), format=format):
        n_lines += 1
        try:
            word = normalize(raw.decode("utf-8").strip())
        except UnicodeDecodeError:
            report.refuse(line, shown(raw), NOT_UTF8)
            continue
        problem = reason_to_refuse(word, spaces=spaces) or problem or (DUPLICATE if word in found else None)
        if problem:
            report.refuse(line, word, problem)
        elif count < min_count:
            report.n_skipped += 1
        else:
            found[word] = count
    if report.n_refused(NOT_UTF8) * 2 > n_lines:
        line = report.first[NOT_UTF8].line
        raise LexiconError(
            f"{path}, line {line}: not UTF-8, like {report.n_refused(NOT_UTF8):,} of {n_lines:,} lines; "
            "convert the file to UTF-8 (for example iconv -f GB18030 -t UTF-8)"
        )
    counts = list(found.values()) if format in ("counts", "pairs") else None
    return WordList(list(found), counts, report.build(n_taken=len(found)))


def detect_format(sample: list[bytes], *, spaces: bool = False) -> str:
    """Guess the format from the first lines: the one that most of them fit, "list" when none does.

    Half is enough for tabs, which no word holds.
    """
    sample = [raw for raw in sample if raw.strip()]
    if not sample:
        return "list"
    if word2vec_width(sample) is not None:
        return "word2vec"
    if 2 * sum(_count(raw.split(b"\t")) is not None for raw in sample) >= len(sample):
        return "counts"
    if not spaces and 2 * sum(_count(raw.split()) is not None for raw in sample) > len(sample):
        return "pairs"
    return "list"


def word2vec_width(sample: list[bytes]) -> int | None:
    """Width of the vectors in the first lines of a word2vec text, or None when it is not one.

    Without a header at least three numbers a line are needed: fewer may be counts.
    """
    header = is_header(sample)
    if header:
        return header[1]
    widths = [len(raw.split()) - 1 for raw in sample if raw.strip()]
    if not widths:
        return None
    width = max(set(widths), key=widths.count)
    fits = sum(_are_numbers(raw.split()[1:]) for raw, n in zip(sample, widths, strict=False) if n == width)
    return width if width >= 3 and 2 * fits > len(sample) else None


def is_header(sample: list[bytes]) -> tuple[int, int] | None:
    """(number of vectors, width) when the first line is a word2vec header that the second line agrees with."""
    fields = sample[0].split() if sample else []
    if len(fields) != 2 or not (fields[0].isdigit() and fields[1].isdigit()):
        return None
    n_rows, width = int(fields[0]), int(fields[1])
    if len(sample) == 1:
        return (n_rows, width) if n_rows == 0 else None
    return (n_rows, width) if width > 1 and _are_numbers(sample[1].split()[-width:], n=width) else None


def _entries(lines: Iterator[tuple[int, bytes]], *, format: str) -> Iterator[tuple[int, bytes, int, str | None]]:
    """(line, word, count, problem) of every line; the count is 1 where the format has none."""
    if format == "word2vec":
        yield from _word2vec_entries(lines)
        return
    for line, raw in lines:
        if format == "list":
            yield line, raw, 1, None
            continue
        fields = raw.split(b"\t") if format == "counts" else raw.split()
        count = _count(fields)
        yield line, fields[0] if fields else b"", count or 0, NO_COUNT if count is None else None


def _word2vec_entries(lines: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes, int, str | None]]:
    sample = list(islice(lines, N_SAMPLE))
    first = [raw for _, raw in sample]
    width = word2vec_width(first) or 0
    for line, raw in chain(sample[1:] if is_header(first) else sample, lines):
        fields = raw.rstrip().replace(b"\t", b" ").rsplit(b" ", width) if width else [raw]
        yield line, fields[0], 1, None if width and len(fields) == width + 1 else NO_VECTOR


def _count(fields: list[bytes]) -> int | None:
    field = fields[1].strip() if len(fields) > 1 else b""
    return int(field) if field.isdigit() else None


def _are_numbers(fields: list[bytes], *, n: int | None = None) -> bool:
    try:
        numbers = [float(field) for field in fields]
    except ValueError:
        return False
    return n is None or len(numbers) == n
