"""Read word lists with labels and modes: in columns, as JSON objects, or with a label after a blank or a slash."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from cige.errors import LexiconError
from cige.lexicon.delimited import (
    COLUMNS,
    HEADERS,
    MAX_NUMBER,
    cells_of,
    column_names,
    count_in,
    declared_delimiter,
    header_columns,
    is_number,
    looks_like_header,
    parsed_row,
    whole_number,
)
from cige.lexicon.report import ReportBuilder
from cige.lexicon.user_word import COMMON_TYPES, EVIDENCE, MODES, NO_MODE, is_label
from cige.text.normalize import fold_width

TAB = "\t"
DELIMITERS = {"labels": TAB, "csv": ","}
TYPED_FORMATS = (*DELIMITERS, "jsonl")
NO_OBJECT = 'not a JSON object with a "word" (or "text", "name")'
NO_TEXT = "label and mode must be strings"
BAD_COUNT = "count is not a whole number"
UNCLOSED = 'quote (") that is not closed'
NO_HEADER = "looks like a header; name its columns word, label, mode and count"
NOT_FIRST = "states the separator, which only the first line may do; remove it, or give joined files one by one"
MODE_AS_LABEL = "a mode in the column of labels (leave that column empty, and give the mode in the next one)"
TOO_MANY = f"more columns than {', '.join(COLUMNS)}"
LABEL_OF_POS = {"nr": "PER", "nrt": "PER", "nrfg": "PER", "ns": "LOC", "nt": "ORG", "nz": None}
"""The labels that jieba's parts of speech of names mean; nz are names of other kinds."""
_BEFORE_LABEL = (b" ", b"/", b"\xe3\x80\x80")  # the last is an ideographic space
_WITH_LABEL = re.compile(r"(.*[^\s/])(?:\s+|\s*/\s*)([A-Z][A-Z_-]{1,19})")
_WITH_POS = re.compile(r"(\S*[^\s/])(?:\s+(\d+))?(?:\s+|\s*/\s*)(" + "|".join(LABEL_OF_POS) + r")")


class Entry(NamedTuple):
    """A line of a word list: `raw` is the word in UTF-8, `problem` is the reason why the line cannot be used."""

    line: int
    raw: bytes
    count: int | None = None  # type: ignore[assignment]  # hides that of tuples, which nothing uses
    label: str | None = None
    mode: str = EVIDENCE
    problem: str | None = None


def detect_typed(sample: Sequence[bytes]) -> str | None:
    """The format of some lines (without blank lines and comments), one of TYPED_FORMATS, or None.

    Words contain no tabs, so one label after a tab is enough. Commas may be part of words: columns separated by commas
    need a header, or most lines must have a label in Latin letters, or a label that occurs twice on average.
    """
    lines = [raw.decode("utf-8", "replace") for raw in sample]
    if not lines:
        return None
    if 2 * sum(isinstance(_json(line), dict) for line in lines) > len(lines):
        return "jsonl"
    for format, delimiter in DELIMITERS.items():
        has_tabs = format == "labels"
        if header_columns(cells_of(lines[0], delimiter, quotes=not has_tabs)) is not None:
            return format
        # A tab separates more than a comma does: the one of `word<TAB>1,000` is part of the number.
        rows = [cells_of(line, delimiter, quotes=not has_tabs) for line in lines if has_tabs or TAB not in line]
        labels = [row[1] for row in rows if 2 <= len(row) <= len(COLUMNS) and is_label(row[1])]
        if has_tabs:
            if not all(map(is_number, labels)):
                return format
        elif 2 * len(labels) > len(lines) and (2 * len(set(labels)) <= len(labels) or all(map(str.isascii, labels))):
            return format
    return None


def typed_entries(
    lines: Iterator[tuple[int, bytes]], *, format: str, report: ReportBuilder, delimiter: str, quotes: bool
) -> Iterator[Entry]:
    """An entry for every line (number, raw bytes) except the header. Raises a LexiconError if the first row is a header
    with unknown names, and the other rows do not begin with a word.

    Args:
        report: has the name of the file for messages, and receives the names of columns that are not read.
        delimiter, quotes: what separates the cells of rows, and whether they may be in quotes.
    """
    has_rows, remembers = format != "jsonl", format == "labels"
    read = row_reader(delimiter, quotes=quotes) if has_rows else _read_object
    may_be_header = has_rows
    usual: dict[bytes, str] = {}  # labels that lines with one tab had; such lines are read at once
    for line, raw in lines:
        if usual and (label := usual.get(raw.partition(b"\t")[2])) and not (quotes and b'"' in raw):
            yield Entry(line, raw.partition(b"\t")[0], None, label)
            continue
        if has_rows and b"=" in raw and declared_delimiter(raw) is not None:
            yield Entry(line, raw, problem=NOT_FIRST)
            continue
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            yield Entry(line, raw)  # refused when the word is decoded
            continue
        if may_be_header:
            may_be_header = False
            cells = cells_of(text, delimiter, quotes=quotes)
            names = column_names(cells)
            if format == "csv" and names == ["word"]:  # of a table of words alone
                continue
            if header_columns(cells) is not None or looks_like_header(cells):
                if "word" not in names:
                    _check_places(cells, f"{report.source}, line {line}")
                    yield Entry(line, _encoded(cells[0]), problem=NO_HEADER)
                    continue
                read, remembers = _named_row_reader(names, delimiter, quotes=quotes), False
                report.ignored_columns = tuple(name for name in names if name and name not in (*COLUMNS, "count"))
                continue
        entry = read(line, text)
        yield entry
        if remembers and entry.label and entry[2:] == (None, entry.label, EVIDENCE, None):
            usual[raw.partition(b"\t")[2]] = entry.label


def _read_object(line: int, text: str) -> Entry:
    parsed = _json(text)
    if not isinstance(parsed, dict):
        return Entry(line, _encoded(text), problem=NO_OBJECT)
    value = _named(parsed)
    given, label, mode, count = (value.get(name) for name in (*COLUMNS, "count"))
    if not isinstance(given, str):
        return Entry(line, _encoded(text), problem=NO_OBJECT)
    word = _encoded(given)
    if not all(value is None or isinstance(value, str) for value in (label, mode)):
        return Entry(line, word, problem=NO_TEXT)
    if type(count) is float and count.is_integer():  # as programs write tables with empty cells
        count = int(count)
    if not (count is None or (type(count) is int and 0 <= count <= MAX_NUMBER)):
        return Entry(line, word, problem=BAD_COUNT)
    return _entry(line, word, label or "", mode or "", count)


def _named(parsed: Mapping[str, Any]) -> Mapping[str, Any]:
    """The values of an object by what they are. Keys may have the names of `HEADERS`, as the columns of a table may;
    of several keys for the same, its own name counts, `text` before other names of the word, or else the first."""
    value = {name: parsed[name] for name in (*COLUMNS, "count") if name in parsed}
    if "text" in parsed:  # as the server and UserWord call it, so another key with such a name is of something else
        value.setdefault("word", parsed["text"])
    for key, given in parsed.items():
        if (name := HEADERS.get(key.strip().lower())) is not None:
            value.setdefault(name, given)
    return value


def row_reader(delimiter: str, *, quotes: bool) -> Callable[[int, str], Entry]:
    """A function that reads lines (number, text) of a word, a label and a mode, in a file without a header.

    A number in the second column is a count, never a label. What comes after it is ignored, unless it is a mode or says
    what kind of name it is: in the dictionaries of word segmenters it is a part of speech.
    """

    def read(line: int, text: str) -> Entry:
        row, is_open = parsed_row(text, delimiter, quotes=quotes)
        word = _encoded(row[0])
        label, mode = (*row[1:3], "", "")[:2]
        if is_open:
            return Entry(line, word, problem=UNCLOSED)
        if is_number(label):
            if (count := count_in(label)) is None:
                return Entry(line, word, problem=BAD_COUNT)
            is_mode = len(row) == 3 and mode.lower() in MODES
            return _entry(line, word, LABEL_OF_POS.get(mode) or "", mode if is_mode else "", count)
        if len(row) > len(COLUMNS):
            return Entry(line, word, problem=TOO_MANY)
        if len(row) == 2 and label in MODES:  # `word<TAB>block` would find what it shall block
            return Entry(line, word, problem=MODE_AS_LABEL)
        return _entry(line, word, label, mode, None)

    return read


def _named_row_reader(names: Sequence[str], delimiter: str, *, quotes: bool) -> Callable[[int, str], Entry]:
    """A function that reads lines with the columns of a header."""

    def read(line: int, text: str) -> Entry:
        row, is_open = parsed_row(text, delimiter, quotes=quotes)
        if is_open:
            return Entry(line, _encoded(row[0]), problem=UNCLOSED)
        value = dict(zip(names, row, strict=False))
        word, given = _encoded(value.get("word", "")), value.get("count", "")
        count = count_in(given)
        if given and count is None:
            return Entry(line, word, problem=BAD_COUNT)
        return _entry(line, word, value.get("label", ""), value.get("mode", ""), count)

    return read


def _entry(line: int, word: bytes, label: str, mode: str, count: int | None) -> Entry:
    mode = mode.strip().lower() or EVIDENCE
    problem = None if mode in MODES else NO_MODE
    return Entry(line, word, count, label.strip() or None, mode, problem)


def _check_places(cells: Sequence[str], place: str) -> None:
    """Raise a LexiconError if the columns of a header that is not understood are not in the order of COLUMNS."""
    usual = {*enumerate(COLUMNS), (1, "count")}
    if any(name in HEADERS.values() and (k, name) not in usual for k, name in enumerate(column_names(cells))):
        raise LexiconError(
            f"{place}: looks like a header ({', '.join(cells)}) without a column of words; name the columns word, "
            "label, mode and count, of which only word is needed"
        )


def is_json_array(lines: Sequence[bytes]) -> bool:
    """Whether the first line opens a JSON array of objects or strings, which is not the format "jsonl"."""
    begin = b"".join(line.strip() for line in lines[:2])
    return begin.startswith(b"[") and begin[1:].lstrip().startswith((b"{", b'"'))


def _json(line: str) -> object:
    if not line.lstrip().startswith("{"):
        return None
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _encoded(word: str) -> bytes:
    return fold_width(word).encode("utf-8")  # without lone surrogates, which JSON can hold


def labelled_word(raw: bytes, *, any_label: bool) -> tuple[bytes, str | None, int | None] | None:
    """The word (UTF-8), label and count of a line that has a label or a part of speech of names, or None for others.

    Args:
        raw: a line in UTF-8 without a tab.
        any_label: whether any capital letters after a word that is not in Latin letters are a label.
    """
    if not any(mark in raw for mark in _BEFORE_LABEL):
        return None
    text = raw.decode("utf-8", "replace").strip()
    match = _WITH_LABEL.fullmatch(text)
    if match is not None:
        word, label = match.groups()
        # BOOK may be the last word of an English name, but PER is not.
        if label in COMMON_TYPES and (not word.isascii() or label in ("PER", "LOC", "ORG", "GPE", "FAC")):
            return word.encode("utf-8"), label, None
        return (word.encode("utf-8"), label, None) if any_label and not word.isascii() else None
    match = _WITH_POS.fullmatch(text)
    if match is not None and not match[1].isascii():
        return match[1].encode("utf-8"), LABEL_OF_POS[match[3]], None if match[2] is None else whole_number(match[2])
    return None


def most_are_labelled(sample: Sequence[bytes]) -> bool:
    """Whether most lines have a label after a blank or a slash, which occurs twice on average."""
    lines = [raw for raw in sample if raw.strip()]
    words = [labelled_word(raw, any_label=True) for raw in lines if b"\t" not in raw]
    labels = [word[1] for word in words if word is not None and word[1] is not None]
    return 2 * len(labels) > len(lines) and 2 * len(set(labels)) <= len(labels)
