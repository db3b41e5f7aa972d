"""Raw text as documents: a sentence a line, a blank line between documents; what had to be mended is counted."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from cige.errors import DataError
from cige.lexicon.sound_lines import SoundLines

_SENTENCE_END = re.compile("[。！？!?…]+[”’」』）)\"']*")
_CLAUSE_END = re.compile(r"[；;：:，,、]|\s")


@dataclass(frozen=True)
class CorpusRules:
    """How lines become sentences and documents.

    Attributes:
        max_line: longest sentence in characters; a longer line is cut after 。！？!?…, then, where a part is still
            too long, after the last ；：，、 or white space within it, and else at this length.
        max_document: most lines a document; a longer one is cut into several.
        is_document_a_line: every line is a document of its own, as in a list of titles.
    """

    max_line: int = 80
    max_document: int = 1000
    is_document_a_line: bool = False


@dataclass
class CorpusReport:
    """What a corpus held and what was done to it.

    Attributes:
        n_documents, n_lines, n_characters: after cutting.
        n_blank: lines that hold nothing but white space; several in a row part documents once.
        n_bad: lines left out because they are not UTF-8 or hold a NUL; bad_lines shows the first of each file.
        n_cut_lines: lines that were longer than max_line; n_forced: cuts among them where no punctuation was near.
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

    def notes(self, rules: CorpusRules) -> list[str]:
        """Sentences for the user on whatever was not as expected; empty where all was."""
        found = []
        if not self.n_blank and not rules.is_document_a_line and self.n_lines > 1:
            found.append(
                "no blank line, so all lines were read as consecutive text of one document; if every line is a text "
                "of its own, say --document-a-line"
            )
        if self.n_cut_documents:
            found.append(f"{self.n_cut_documents:,} documents of more than {rules.max_document:,} lines were cut")
        if self.n_cut_lines:
            found.append(
                f"{self.n_cut_lines:,} lines of more than {rules.max_line} characters were cut at punctuation, "
                f"{self.n_forced:,} times in its absence"
            )
        if self.n_bad:
            found.append(f"{self.n_bad:,} lines left out (not UTF-8, or with a NUL): {'; '.join(self.bad_lines[:3])}")
        return found


def read_documents(
    paths: Sequence[str | os.PathLike[str]], rules: CorpusRules, report: CorpusReport
) -> Iterator[tuple[str, ...]]:
    """Yield the lines of each document that holds any; files end documents too.

    Args:
        paths: UTF-8 text, plain, .gz or .xz.
        report: filled while reading.

    Raises:
        CigeError: a file cannot be read or is not UTF-8 text, or none of them holds any text.
    """
    for path in paths:
        lines: list[str] = []
        is_continued = False
        for line in _sentences(path, rules, report):
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
    if not report.n_documents:
        raise DataError(f"{', '.join(map(str, paths))}: no text in it; expected a sentence a line")


def cut_line(text: str, max_line: int) -> tuple[list[str], int]:
    """The parts of a line, each of 1 to `max_line` characters, and how many cuts were not at punctuation."""
    sentences, start = [], 0
    for end in [found.end() for found in _SENTENCE_END.finditer(text)] + [len(text)]:
        sentences.append(text[start:end])
        start = end
    parts, n_forced = [], 0
    for sentence in sentences:
        start = 0
        while len(sentence) - start > max_line:
            ends = [found.end() for found in _CLAUSE_END.finditer(sentence, start, start + max_line)]
            n_forced += not ends
            end = ends[-1] if ends else start + max_line
            parts.append(sentence[start:end].strip())
            start = end
        parts.append(sentence[start:].strip())
    return [part for part in parts if part], n_forced


def _sentences(path: str | os.PathLike[str], rules: CorpusRules, report: CorpusReport) -> Iterator[str | None]:
    """Each sentence of a file, and None where a document ends."""
    lines = SoundLines(path)
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
    report.bad_lines += [f"{path}, {line}" for line in lines.bad_lines]


def _counted(lines: list[str], report: CorpusReport) -> tuple[str, ...]:
    report.n_documents += 1
    report.n_lines += len(lines)
    report.n_characters += sum(map(len, lines))
    return tuple(lines)
