"""Read word lists: one word per line, words with counts or labels, or word2vec text. Refused lines are reported."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import cast

from cige.errors import LexiconError
from cige.lexicon.delimited import (
    column_names,
    count_in,
    declared_delimiter,
    has_another_delimiter,
    joined_rows,
    other_delimiter,
)
from cige.lexicon.report import LoadReport, ReportBuilder
from cige.lexicon.text_file import read_lines, shown
from cige.lexicon.typed_lines import (
    DELIMITERS,
    LABEL_OF_POS,
    TAB,
    TYPED_FORMATS,
    Entry,
    detect_typed,
    is_json_array,
    labelled_word,
    most_are_labelled,
    row_reader,
    typed_entries,
)
from cige.lexicon.user_word import (
    BAD_LABEL,
    BLOCKING,
    EVIDENCE,
    Mode,
    UserWord,
    is_usable,
    reason_to_refuse_user_word,
)
from cige.lexicon.vector_files import N_SAMPLE, NO_VECTOR, cells_of_row, is_header, word2vec_width
from cige.lexicon.word_rules import CONTRADICTION, DUPLICATE, MAX_WORD_CHARS, NOT_UTF8, reason_to_refuse
from cige.text.normalize import normalize, normalize_word, without_invisible

FORMATS = ("auto", "list", "counts", "pairs", "word2vec", *TYPED_FORMATS)
NO_COUNT = "count missing or not a whole number"
WRONG_SEPARATOR = "none of the next lines has this separator, but most have another; correct this line or remove it"
_WORD_SHOWN = 30  # characters of a word before its label, in messages
_READ_COLUMNS = row_reader(TAB, quotes=False)
_CSV_NAME = re.compile(r"\.csv(\.gz|\.xz)?$", re.IGNORECASE)
_TSV_NAME = re.compile(r"\.tsv(\.gz|\.xz)?$", re.IGNORECASE)
_JSONL_NAME = re.compile(r"\.(jsonl|ndjson)(\.gz|\.xz)?$", re.IGNORECASE)
_COMMENT_BEHIND = re.compile(rb"[ \t]#(?=[ \t]|$).*")
# Parts of speech as jieba's dictionaries name them.
_TAGGED = re.compile(rb"\S*[\x80-\xff]\S* [0-9]+ (a[dn]?|eng|n[gstz]?|nr(fg|t)?|v[dn]?|[bcdfgijlmopqrstuxyz])\s*")


@dataclass(frozen=True)
class WordList:
    """Distinct words, normalised, in file order.

    Attributes:
        words: the words; those of a user as by `normalize_word`.
        counts: one count per word, or None if the file has none.
        report: which lines were taken and which were refused.
        of_words: the label, or None, and the mode of each word.
    """

    words: list[str]
    counts: list[int] | None
    report: LoadReport
    of_words: list[tuple[str | None, str]]

    def check(self) -> None:
        """Raise a LexiconError if there is no word."""
        if not self.words:
            expected = "expected words of two or more characters, one per line"
            raise LexiconError(f"no usable word; {expected}\n{self.report}")

    @cached_property
    def user_words(self) -> list[UserWord]:
        """The words with their labels and modes."""
        return [UserWord(*word) for word in self.triples()]  # type: ignore[arg-type]

    def triples(self) -> Iterator[tuple[str, str | None, str]]:
        """The text, label and mode of each word."""
        return ((text, *facts) for text, facts in zip(self.words, self.of_words, strict=True))


def read_words(
    path: str | os.PathLike[str],
    *,
    format: str = "auto",
    min_count: int = 0,
    spaces: bool = False,
    pairs: bool | None = None,
    label: str | None = None,
    mode: Mode = EVIDENCE,
) -> WordList:
    """Read a word list, plain, .gz or .xz. Blank lines are ignored, and comments (#) unless it is word2vec.

    A comment is a line that begins with # or, except in "csv" and "jsonl", what follows a # between blanks.

    Args:
        path: the file, in UTF-8.
        format: "list" (one word per line), "counts" (word<TAB>count, further columns are ignored), "pairs" (`word
            count` separated by spaces, further columns are ignored), "word2vec" (`word v1 ... vD`, optionally with a
            header), "labels" (word<TAB>label<TAB>mode), "csv" (word,label,mode), "jsonl" ({"word": ..., "label": ...,
            "mode": ...}), or "auto". Label and mode are optional. In "labels" and "csv", a number in place of the label
            is a count, also as `12.0` or `1,000`, and never a label. Their first line may be a header with the names of
            the columns in any order (`delimited.HEADERS`), which must include `word` (or name, 词, 名称 ...) and may
            include `label` (or type, 标签, 类型, 类别), `mode` and `count`; other columns are ignored. A first row that
            looks like a header of other names is refused. Cells of "csv", and of "labels" in a file whose name ends
            in .tsv, may be in quotes and then have line breaks in them; a quote that is not closed costs its line.
            "auto" reads what stands after a tab as a label or a count wherever it stands, however few lines have one,
            and a file whose name ends in .csv as "csv" if it has commas or quotes, if all lines have semicolons
            (or ，) instead, or if its first line is the header `word`. A file that begins with a line such as `sep=;`,
            not counting blank lines and comments, is "csv" with that separator; one further below is refused. A file
            whose name ends in .jsonl is "jsonl" if a line of it begins with {. Of user words, "auto" also reads `word
            label` and `word/label`, and the labels of jieba's `word count nr` (see `labelled_word`).
        min_count: words with a smaller count are skipped; the file must have counts.
        spaces: whether these are user words, which may contain spaces as in "iPhone 15 Pro" (so "auto" does not detect
            "pairs"), and may have a single character if their mode is force or block.
        pairs: whether "auto" may detect "pairs"; None: if words cannot contain spaces.
        label: the label of user words for which the file has none, except of blocked words.
        mode: the mode of user words for which the file has none, or has "evidence".

    Raises:
        LexiconError: the file cannot be read, most of it is not UTF-8, it is a JSON array, its header names no column
            of words, or the format is unknown. Single bad lines are only listed in the report.
    """
    if format not in FORMATS:
        raise LexiconError(f"format {format!r}: expected one of {', '.join(FORMATS)}")
    report, entries = _opened(path, format, spaces=spaces, pairs=not spaces if pairs is None else pairs)
    if min_count > 1 and report.format in ("list", "word2vec"):
        raise LexiconError(
            f"{path}: read as {report.format!r}, which has no counts, so min_count={min_count} cannot be applied"
        )
    form = normalize_word if spaces and pairs is None else normalize
    of_word: dict[str, tuple[str | None, str]] = {}
    # Labels and modes: one tuple for all words that have them, and whether ordinary words can.
    known: dict[tuple[str | None, str], tuple[tuple[str | None, str], bool]] = {}
    counts: list[int | None] = []
    n_lines = 0
    for entry in entries:
        n_lines += 1
        try:
            text = form(without_invisible(entry.raw.decode("utf-8")).strip())
        except UnicodeDecodeError:
            report.refuse(entry.line, shown(entry.raw), NOT_UTF8)
            continue
        own_mode = mode if entry.mode == EVIDENCE else entry.mode
        facts = (entry.label if own_mode in BLOCKING else entry.label or label), own_mode
        if facts not in known:
            known[facts] = facts, is_usable(*facts)
        facts, is_possible = known[facts]
        if entry.problem is not None or not spaces:  # the text of a line with a problem may be no word
            problem = entry.problem or reason_to_refuse(text)
        elif is_possible and text.isalnum() and 2 <= len(text) <= MAX_WORD_CHARS:  # nearly every word
            problem = None
        else:
            problem = reason_to_refuse_user_word(UserWord(text, facts[0], cast(Mode, facts[1])))
        if problem is None and text in of_word:
            problem = DUPLICATE if facts == of_word[text] else CONTRADICTION
        if problem:
            named = f"{text[:_WORD_SHOWN]} (label {facts[0]})" if problem == BAD_LABEL else text
            report.refuse(entry.line, named, problem)
        elif (1 if entry.count is None else entry.count) < min_count:
            report.n_skipped += 1
        else:
            of_word[text] = facts
            counts.append(entry.count)
    n_bad = report.reasons[NOT_UTF8]
    if 2 * n_bad > n_lines:
        raise LexiconError(
            f"{path}, line {report.first[NOT_UTF8].line}: not UTF-8, like {n_bad:,} of {n_lines:,} lines; convert the "
            "file to UTF-8 (for example iconv -f GB18030 -t UTF-8)"
        )
    has_counts = report.format in ("counts", "pairs") or any(count is not None for count in counts)
    return WordList(
        words=list(of_word),
        counts=[1 if count is None else count for count in counts] if has_counts else None,
        report=report.build(n_taken=len(of_word)),
        of_words=list(of_word.values()),
    )


def _opened(
    path: str | os.PathLike[str], format: str, *, spaces: bool, pairs: bool
) -> tuple[ReportBuilder, Iterator[Entry]]:
    """The report of a word list, which has its format, and its entries; the arguments are those of `read_words`."""
    lines = read_lines(path)
    sample = list(islice(lines, N_SAMPLE))
    content = [(line, raw) for line, raw in sample if raw.strip() and not _is_comment(raw)]
    reads_labels = spaces and format == "auto"
    declared = declared_delimiter(content[0][1]) if content and format in ("auto", *DELIMITERS) else None
    if declared is not None:
        sample.remove(content[0])
        format, delimiter = "csv", declared
    elif format == "auto":
        format, delimiter = _detected(path, [raw for _, raw in sample], pairs)
    else:
        delimiter = DELIMITERS.get(format, TAB)
    report = ReportBuilder(source=str(path), format=format)
    if declared is not None and has_another_delimiter([raw for _, raw in content[1:]], declared):
        report.refuse(content[0][0], shown(content[0][1]), WRONG_SEPARATOR)
    rows: Iterator[tuple[int, bytes]] = chain(sample, lines)
    quotes = format == "csv" or (format == "labels" and _TSV_NAME.search(str(path)) is not None)
    rows = _content_lines(joined_rows(rows, delimiter) if quotes else rows, report)
    if format in TYPED_FORMATS:
        return report, typed_entries(rows, format=format, report=report, delimiter=delimiter, quotes=quotes)
    any_label = reads_labels and most_are_labelled([raw for _, raw in sample if not _is_comment(raw)])
    return report, _entries(rows, format=format, columns=reads_labels, any_label=any_label)


def _detected(path: str | os.PathLike[str], sample: list[bytes], pairs: bool) -> tuple[str, str]:
    """The format of a file with these first lines, and what separates the cells of its rows if it has rows."""
    content = [raw for raw in sample if raw.strip() and not _is_comment(raw)]
    if is_json_array(content):
        raise LexiconError(
            f'{path}: a JSON array; expected one JSON object with a "word" per line '
            "(for example jq -c '.[]' words.json > words.jsonl)"
        )
    format = detect_format(sample, spaces=not pairs)
    if _JSONL_NAME.search(str(path)) and any(raw.lstrip().startswith(b"{") for raw in content):
        format = "jsonl"  # however many lines are wrong
    if format == "list" and _CSV_NAME.search(str(path)):
        if delimiter := other_delimiter(content):
            return "csv", delimiter
        has_cells = any(b"," in raw or b'"' in raw for raw in content)
        if has_cells or column_names([raw.decode("utf-8", "replace") for raw in content[:1]]) == ["word"]:
            format = "csv"
    return format, DELIMITERS.get(format, TAB)


def detect_format(sample: list[bytes], *, spaces: bool = False) -> str:
    """Detect the format from the first lines: the one that most of them have, or "list" if there is none. For formats
    with tabs fewer are enough, since words contain no tabs: half of the lines for counts, one for labels. If words may
    contain spaces, numbers after a space are counts only if most lines have a part of speech after them, as in jieba's
    dictionaries ("云计算 5 n"): in "iPhone 15" they belong to the name."""
    sample = [raw for raw in sample if raw.strip()]
    if word2vec_width(sample) is not None:
        return "word2vec"
    sample = [raw for raw in sample if not _is_comment(raw)]
    if not sample:
        return "list"
    typed = detect_typed(sample)
    if 2 * sum(_count(raw.split(b"\t")) is not None for raw in sample) >= len(sample) and not (spaces and typed):
        return "counts"
    is_pair = [bool(_TAGGED.fullmatch(raw.strip())) if spaces else _count(raw.split()) is not None for raw in sample]
    if 2 * sum(is_pair) > len(sample):
        return "pairs"
    return typed or "list"


def _is_comment(raw: bytes) -> bool:
    return raw.lstrip().startswith(b"#")


def _content_lines(lines: Iterator[tuple[int, bytes]], report: ReportBuilder) -> Iterator[tuple[int, bytes]]:
    """The lines that are neither blank nor comments; in word2vec text, a line may be the vector of the word "#"."""
    for line, raw in lines:
        if not raw.strip():
            continue
        if report.format != "word2vec" and _is_comment(raw):
            report.n_comments += 1
        elif b"#" in raw and b"\n" not in raw and report.format not in ("word2vec", "csv", "jsonl"):
            yield line, _COMMENT_BEHIND.sub(b"", raw).rstrip()
        else:
            yield line, raw


def _entries(lines: Iterator[tuple[int, bytes]], *, format: str, columns: bool, any_label: bool) -> Iterator[Entry]:
    """An entry for every line of a format that is not in TYPED_FORMATS. With `columns`, lines of a list, or of words
    with counts, may have a label after a tab, a blank or a slash (those from which the format was detected had none
    after a tab); after a blank or a slash only common types are labels, or with `any_label` any capital letters."""
    if format == "word2vec":
        yield from _word2vec_entries(lines)
        return
    for line, raw in lines:
        if format == "list":
            yield (_labelled_entry(line, raw, any_label) if columns else None) or Entry(line, raw)
            continue
        fields = raw.split(b"\t") if format == "counts" else raw.split()
        count = _count(fields)
        if count is not None:
            label = LABEL_OF_POS.get(fields[2].strip().decode("latin-1")) if columns and len(fields) > 2 else None
            yield Entry(line, fields[0], count, label)
        else:
            labelled = _labelled_entry(line, raw, any_label) if columns else None
            yield labelled or Entry(line, fields[0], problem=NO_COUNT)


def _labelled_entry(line: int, raw: bytes, any_label: bool) -> Entry | None:
    """The entry of a line of user words, in a file whose first lines have no labels, that has tabs or a label."""
    if b"\t" in raw:
        try:
            return _READ_COLUMNS(line, raw.decode("utf-8"))
        except UnicodeDecodeError:
            return Entry(line, raw)  # refused when the word is decoded
    labelled = labelled_word(raw, any_label=any_label)
    return None if labelled is None else Entry(line, labelled[0], labelled[2], labelled[1])


def _word2vec_entries(lines: Iterator[tuple[int, bytes]]) -> Iterator[Entry]:
    sample = list(islice(lines, N_SAMPLE))
    first = [raw for _, raw in sample]
    width = word2vec_width(first) or 0
    for line, raw in chain(sample[1:] if is_header(first) else sample, lines):
        fields = cells_of_row(raw, width) if width else [raw]
        yield Entry(line, fields[0], problem=None if width and len(fields) == width + 1 else NO_VECTOR)


def _count(fields: list[bytes]) -> int | None:
    return count_in(fields[1].strip()) if len(fields) > 1 else None
