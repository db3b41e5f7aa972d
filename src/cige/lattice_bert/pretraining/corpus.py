"""Raw text as documents: one sentence per line, a blank line between documents; corrections are counted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields

from cige.lattice_bert.pretraining.units import Stretch
from cige.lexicon.text_file import SoundLines
from cige.text.counted import counted

_SENTENCE_END = re.compile("[。！？!?…]+[”’」』）)\"']*")
_N_SHOWN = 3
_CLAUSE_END = re.compile(r"[；;：:，,、]|\s")


@dataclass(frozen=True)
class CorpusRules:
    """How lines become sentences and documents.

    Attributes:
        max_line: maximum length of a sentence in characters. A longer line is cut after 。！？!?…; parts that are still
            too long are cut after the last ；：，、 or white space, or else at this length.
        max_document: maximum number of lines per document; a longer document is cut into several.
        is_document_a_line: whether every line is a separate document, as in a list of titles.
    """

    max_line: int = 80
    max_document: int = 1000
    is_document_a_line: bool = False


@dataclass
class CorpusReport:
    """The contents of a corpus and the corrections that were made.

    Attributes:
        n_documents, n_lines, n_characters: numbers after cutting.
        n_blank: lines of only white space; several in a row count as one document boundary.
        n_bad: lines that were left out because they are not UTF-8 or contain a NUL; bad_lines: the first of them.
        n_cut_lines: lines that were longer than max_line; n_forced: cuts that had to be made without punctuation.
        n_cut_documents: documents that were longer than max_document.
    """

    n_documents: int = 0
    n_lines: int = 0
    n_characters: int = 0
    n_blank: int = 0
    n_bad: int = 0
    n_cut_lines: int = 0
    n_forced: int = 0
    n_cut_documents: int = 0
    bad_lines: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, reports: Iterable[CorpusReport]) -> CorpusReport:
        """The report on a whole corpus, from those on its parts in order."""
        total = cls()
        for report in reports:
            for count in fields(cls):
                setattr(total, count.name, getattr(total, count.name) + getattr(report, count.name))
        total.bad_lines = total.bad_lines[:_N_SHOWN]
        return total

    def notes(self, rules: CorpusRules) -> list[str]:
        """Messages for the user about anything unexpected; empty if there was nothing."""
        notes = []
        if not self.n_blank and not rules.is_document_a_line and self.n_lines > 1:
            notes.append(
                "no blank line, so all lines were read as consecutive text of one document; if every line is a "
                "document, use --document-a-line"
            )
        if self.n_cut_documents:
            notes.append(
                f"cut: {counted(self.n_cut_documents, 'document')} of more than {counted(rules.max_document, 'line')}"
            )
        if self.n_cut_lines:
            notes.append(
                f"cut at punctuation: {counted(self.n_cut_lines, 'line')} of more than {rules.max_line} characters, "
                f"{counted(self.n_forced, 'time')} where there was none"
            )
        if self.n_bad:
            notes.append(
                f"{counted(self.n_bad, 'line')} left out (not UTF-8, or with a NUL): {'; '.join(self.bad_lines)}"
            )
        return notes


def documents_of(stretch: Stretch, rules: CorpusRules, report: CorpusReport) -> Iterator[tuple[str, ...]]:
    """Yield the lines of each document of a stretch that is not empty, and update the report. Raises a CigeError if the
    file cannot be read or is not UTF-8 text."""
    lines: list[str] = []
    is_continued = stretch.begins_inside
    for line in _sentences(stretch, rules, report):
        if line is None or len(lines) == rules.max_document:
            if lines:
                yield _counted(lines, report)
            report.n_cut_documents += line is not None and not is_continued
            is_continued = line is not None
            lines = []
        if line is not None:
            lines.append(line)
    if lines:
        yield _counted(lines, report)
    report.n_cut_documents += stretch.ends_inside and not is_continued


def cut_line(text: str, max_line: int) -> tuple[list[str], int]:
    """The parts of a line, each of 1 to `max_line` characters, and the number of cuts that were not at punctuation."""
    sentences, start = [], 0
    for end in [match.end() for match in _SENTENCE_END.finditer(text)] + [len(text)]:
        sentences.append(text[start:end])
        start = end
    parts, n_forced = [], 0
    for sentence in sentences:
        start = 0
        while len(sentence) - start > max_line:
            ends = [match.end() for match in _CLAUSE_END.finditer(sentence, start, start + max_line)]
            n_forced += not ends
            end = ends[-1] if ends else start + max_line
            parts.append(sentence[start:end].strip())
            start = end
        parts.append(sentence[start:].strip())
    return [part for part in parts if part], n_forced


def _sentences(stretch: Stretch, rules: CorpusRules, report: CorpusReport) -> Iterator[str | None]:
    """Yield each sentence of a stretch, and None at the end of each document."""
    raw = stretch.read()
    numbered = enumerate((line.rstrip(b"\r") for line in raw.removesuffix(b"\n").split(b"\n")), start=1)
    lines = SoundLines(stretch.place, numbered if raw else ())
    for _, line in lines:
        text = line.strip()
        if not text:
            report.n_blank += 1
            yield None
            continue
        if len(text) > rules.max_line:
            parts, n_forced = cut_line(text, rules.max_line)
            report.n_cut_lines += 1
            report.n_forced += n_forced
            yield from parts
        else:
            yield text
        if rules.is_document_a_line:
            yield None
    report.n_bad += lines.n_bad
    report.bad_lines += [f"{stretch.place}, {line}" for line in lines.bad_lines]


def _counted(lines: list[str], report: CorpusReport) -> tuple[str, ...]:
    report.n_documents += 1
    report.n_lines += len(lines)
    report.n_characters += sum(map(len, lines))
    return tuple(lines)
