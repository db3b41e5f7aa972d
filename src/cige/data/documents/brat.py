"""brat standoff: a folder with a .txt and a .ann file for each document. Offsets are code points.

Entities in brat cannot contain line breaks, so such entities are written as fragments. Fragments with only whitespace
between them are read as one entity.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from cige.data.documents.document import Document, ReadingOptions, checked
from cige.data.jsonl import make_span
from cige.data.sentence import Span
from cige.data.text_files import error_context, has_surrogate, read_text
from cige.errors import DataError
from cige.folders.atomic import atomic_folder
from cige.folders.visible import visible_files

_BREAKS = re.compile(r"[\r\n]+")
_LABEL = re.compile(r"[^\s]+")
_ENTITY = re.compile(r"T\S+\t(\S+) (\d+ \d+(?:;\d+ \d+)*)(?:\t.*)?", re.DOTALL)


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
    """Write a folder with 000001.txt, 000001.ann and so on, completely or not at all.

    Raises:
        DataError: the folder exists and is not empty, or a label contains whitespace.
    """
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise DataError(f"{path}: there already, and not an empty folder; give a new one")
    with atomic_folder(path) as aside:
        for number, document in checked(documents):
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
    places = [tuple(map(int, place.split())) for place in match[2].split(";")]
    for (_, end), (start, _) in pairwise(places):
        if text[end:start].strip():
            raise DataError(f"a discontinuous entity ({match[2]}); cige reads entities in one piece")
    return make_span(places[0][0], places[-1][1], match[1], text)


def _line(number: int, span: Span, text: str) -> str:
    if not _LABEL.fullmatch(span.label):
        raise DataError(f"label {span.label!r} has whitespace, which brat cannot hold")
    surface = text[span.start : span.end]
    places, start = [], span.start
    for match in _BREAKS.finditer(surface):
        places.append((start, span.start + match.start()))
        start = span.start + match.end()
    places = [(a, b) for a, b in [*places, (start, span.end)] if a < b]
    if not places or (places[0][0], places[-1][1]) != (span.start, span.end):
        raise DataError(f"an entity that begins or ends with a line break ({surface[:20]!r}), which brat cannot hold")
    shown = " ".join(text[a:b] for a, b in places)
    return f"T{number}\t{span.label} {';'.join(f'{a} {b}' for a, b in places)}\t{shown}\n"
