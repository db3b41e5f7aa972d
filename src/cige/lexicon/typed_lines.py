"""Read word lists with labels and modes, in columns or as JSON objects."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from cige.lexicon.labelled_words import LABEL_OF_POS
from cige.lexicon.user_word import EVIDENCE, MODES, NO_MODE, is_label
from cige.lexicon.whole_number import MAX_NUMBER, whole_number
from cige.text.normalize import fold_width

COLUMNS = ("word", "label", "mode")
HEADERS = {
    **dict.fromkeys(("word", "name", "词", "词语", "名称"), "word"),
    **dict.fromkeys(("label", "type", "标签", "类型", "类别"), "label"),
    **{"mode": "mode", "count": "count"},
}
DELIMITERS = {"labels": "\t", "csv": ","}
TYPED_FORMATS = (*DELIMITERS, "jsonl")
NO_OBJECT = 'not a JSON object with a "word" (or "text")'
NO_TEXT = "label and mode must be strings"
BAD_COUNT = "count is not a whole number"
TOO_MANY = f"more columns than {', '.join(COLUMNS)}"


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
        if _header(lines[0], delimiter) is not None:
            return format
        rows = [_fields(line, delimiter) for line in lines]
        labels = [row[1] for row in rows if 2 <= len(row) <= len(COLUMNS) and is_label(row[1])]
        if format == "labels":
            if not all(map(str.isdecimal, labels)):
                return format
        elif 2 * len(labels) > len(rows) and (2 * len(set(labels)) <= len(labels) or all(map(str.isascii, labels))):
            return format
    return None


def typed_entries(lines: Iterator[tuple[int, bytes]], *, format: str) -> Iterator[Entry]:
    """An entry for every line (number, raw bytes) except the header."""
    read = entry_reader(format)
    is_first, has_header = True, False
    usual: dict[bytes, str] = {}  # labels that lines with one tab had; such lines are read at once
    for line, raw in lines:
        if format == "labels" and (label := usual.get(raw.partition(b"\t")[2])):
            yield Entry(line, raw.partition(b"\t")[0], None, label)
            continue
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            yield Entry(line, raw)  # refused when the word is decoded
            continue
        if is_first and format != "jsonl":
            header = _header(text, DELIMITERS[format])
            if header is not None:
                read, is_first = _row_reader(header, DELIMITERS[format], is_named=True), False
                has_header = True
                continue
        is_first = False
        entry = read(line, text)
        yield entry
        if not has_header and entry.label is not None and entry[2:] == (None, entry.label, EVIDENCE, None):
            usual[raw.partition(b"\t")[2]] = entry.label


def entry_reader(format: str) -> Callable[[int, str], Entry]:
    """A function that reads a line (number, text) of a file without a header."""
    return _read_object if format == "jsonl" else _row_reader(COLUMNS, DELIMITERS[format], is_named=False)


def _read_object(line: int, text: str) -> Entry:
    parsed = _json(text)
    if not isinstance(parsed, dict):
        return Entry(line, _encoded(text), problem=NO_OBJECT)
    given = parsed.get("word", parsed.get("text"))  # `text` is what the server and UserWord call it
    if not isinstance(given, str):
        return Entry(line, _encoded(text), problem=NO_OBJECT)
    label, mode, count = parsed.get("label"), parsed.get("mode"), parsed.get("count")
    word = _encoded(given)
    if not all(value is None or isinstance(value, str) for value in (label, mode)):
        return Entry(line, word, problem=NO_TEXT)
    if not (count is None or (type(count) is int and 0 <= count <= MAX_NUMBER)):
        return Entry(line, word, problem=BAD_COUNT)
    return _entry(line, word, label or "", mode or "", count)


def _row_reader(names: Sequence[str], delimiter: str, *, is_named: bool) -> Callable[[int, str], Entry]:
    """A function that reads lines with these columns.

    Without a header, a number in the second column is a count. What comes after it is ignored, unless it is a mode or
    says what kind of name it is: in the dictionaries of word segmenters it is a part of speech.
    """

    def read(line: int, text: str) -> Entry:
        row = _fields(text, delimiter)
        if not is_named and len(row) > 1 and row[1].isdecimal():
            mode = row[2] if len(row) == 3 and row[2].lower() in MODES else ""
            label = LABEL_OF_POS.get(row[2]) if len(row) > 2 else None
            return _entry(line, _encoded(row[0]), label or "", mode, int(row[1]))
        if len(row) > len(names) and not is_named:
            return Entry(line, _encoded(row[0]), problem=TOO_MANY)
        value = dict(zip(names, row, strict=False))
        label, count = value.get("label", ""), value.get("count", "")
        word = _encoded(value.get("word", ""))
        number = whole_number(count)
        if count and number is None:
            return Entry(line, word, problem=BAD_COUNT)
        return _entry(line, word, label, value.get("mode", ""), number)

    return read


def _entry(line: int, word: bytes, label: str, mode: str, count: int | None) -> Entry:
    mode = mode.strip().lower() or EVIDENCE
    problem = None if mode in MODES else NO_MODE
    return Entry(line, word, count, label.strip() or None, mode, problem)


def _header(line: str, delimiter: str) -> list[str] | None:
    """The names of the columns if the line is a header: `word` and at least one of the others, or their HEADERS."""
    names = [HEADERS.get(name.lower(), name) for name in _fields(line, delimiter)]
    return names if "word" in names and {"label", "mode", "count"} & set(names) else None


def _fields(line: str, delimiter: str) -> list[str]:
    if delimiter == "\t":
        return [field.strip() for field in line.split("\t")]
    try:
        return [field.strip() for field in next(csv.reader([line], skipinitialspace=True), [""])]
    except csv.Error:
        return [line.strip()]


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
