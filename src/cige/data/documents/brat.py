"""brat standoff: a folder with a .txt and a .ann file for each document. Offsets are code points.

Entities in brat cannot contain line breaks, so such entities are written as fragments, as are the parts of
discontinuous entities. Fragments with only whitespace between them are read as one part.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from cige.data.documents.document import Document, ReadingOptions, checked
from cige.data.documents.folders import visible_files
from cige.data.jsonl import check_surface, make_span, with_parts
from cige.data.sentence import Span, show_span
from cige.data.text_files import error_context, has_surrogate, read_text
from cige.errors import DataError
from cige.folders.atomic import atomic_folder

_BREAKS = re.compile(r"[\r\n]+")
_LABEL = re.compile(r"[^\s]+")
_PLACE = "[0-9]{1,18} [0-9]{1,18}"
_ENTITY = re.compile(rf"T\S+\t(\S+) ({_PLACE}(?:;{_PLACE})*)(?:\t(.*))?", re.DOTALL)


def read_brat(path: Path, options: ReadingOptions) -> list[Document]:
    """Read all .txt files of a folder, sorted by name, or one .txt or .ann file; texts without .ann are unlabelled."""
    texts = [f for f in visible_files(path) if f.suffix == ".txt"] if path.is_dir() else [path.with_suffix(".txt")]
    if not texts:
        raise DataError(
            f"{path} is a folder without documents; expected a file, a folder of brat's .txt and .ann files, or a "
            "folder of files in one format, such as .jsonl, .csv or .parquet"
        )
    return [_read(file, number) for number, file in enumerate(texts, 1)]


def write_brat(path: Path, documents: Iterable[Document]) -> None:
    """Write a folder with 000001.txt, 000001.ann and so on, completely or not at all. Raises a DataError if the folder
    exists and is not empty, a label contains whitespace, or an entity has an edge or a gap that brat cannot hold."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise DataError(f"{path}: there already, and not an empty folder; give a new one")
    with atomic_folder(path) as aside:
        for number, document in checked(documents, parts=True):
            (aside / f"{number:06d}.txt").write_bytes(_encoded(document.text, number))
            if document.is_labelled:
                lines = [_line(k, span, document.text) for k, span in enumerate(document.spans, 1)]
                (aside / f"{number:06d}.ann").write_bytes(_encoded("".join(lines), number))


def _encoded(text: str, number: int) -> bytes:
    if has_surrogate(text):
        raise DataError(f"document {number}: a lone surrogate, which brat's files cannot hold; write jsonl")
    if text.startswith("\ufeff"):  # readers take it for a byte order mark, which would move all offsets
        raise DataError(f"document {number}: begins with U+FEFF, which brat's files cannot hold; write jsonl")
    return text.encode("utf-8")


def _read(file: Path, number: int) -> Document:
    raw, ann = read_text(file), file.with_suffix(".ann")
    if not ann.exists():
        return Document(raw, is_labelled=False, line=number)
    spans = []
    for line_number, line in enumerate(read_text(ann).split("\n"), 1):
        if line.startswith("T"):
            with error_context(f"{ann}, line {line_number}"):
                spans.append(_span(line.removesuffix("\r"), raw))
    return Document(raw, tuple(sorted(spans)), line=number)


def _span(line: str, text: str) -> Span:
    match = _ENTITY.fullmatch(line)
    if match is None:
        raise DataError(f"expected `T1<tab>LABEL start end<tab>text`, found {line[:60]!r}")
    places = dict.fromkeys(match[2].split(";"))  # a place that is written twice is read once
    fragments = [[int(offset) for offset in place.split()] for place in places]
    if any(end > start for (_, end), (start, _) in pairwise(fragments)):
        raise DataError(f"fragments {match[2]!r} overlap or are out of order; write them from left to right")
    parts = [fragments[0]]
    for start, end in fragments[1:]:
        if start < end and not text[parts[-1][1] : start].strip():
            parts[-1] = [parts[-1][0], end]
        else:
            parts.append([start, end])
    span = make_span(parts[0][0], parts[-1][1], match[1], text)
    span = with_parts(span, parts if len(parts) > 1 else None)
    # brat writes blanks for line breaks and gaps; other tools write line breaks, where what they show is cut off here.
    shown, expected = ("".join(part.split()) for part in (match[3] or "", span.text_in(text)))
    is_shown = expected.startswith(shown) if "\n" in span.text_in(text) or not shown else expected == shown
    if not is_shown:
        check_surface(span, match[3], text)
    return span


def _line(number: int, span: Span, text: str) -> str:
    if not _LABEL.fullmatch(span.label):
        raise DataError(f"label {span.label!r} has whitespace, which brat cannot hold")
    if any(not text[end:start].strip() for (_, end), (start, _) in pairwise(span.pieces)):
        raise DataError(
            f"{show_span(span, text)} has a gap of nothing but whitespace, which is no gap in brat; write jsonl"
        )
    places = [place for start, end in span.pieces for place in _fragments(start, end, text)]
    shown = " ".join(text[a:b] for a, b in places)
    return f"T{number}\t{span.label} {';'.join(f'{a} {b}' for a, b in places)}\t{shown}\n"


def _fragments(start: int, end: int, text: str) -> list[tuple[int, int]]:
    """The stretches of [start, end) between line breaks."""
    places, begin = [], start
    for match in _BREAKS.finditer(text, start, end):
        places.append((begin, match.start()))
        begin = match.end()
    places = [(a, b) for a, b in [*places, (begin, end)] if a < b]
    if not places or (places[0][0], places[-1][1]) != (start, end):
        surface = text[start:end][:20]
        raise DataError(f"an entity that begins or ends with a line break ({surface!r}), which brat cannot hold")
    return places
