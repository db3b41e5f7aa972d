"""Read and write sentences in files of any supported format."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from pathlib import Path

from cige.data.columns import DOCSTART, format_columns, parse_columns
from cige.data.documents.document import Document, ReadingOptions
from cige.data.documents.folders import suffix
from cige.data.documents.formats import find_format, known, of_json, of_name, read_documents, write_documents
from cige.data.jsonl import format_json_lines, learnable, looks_like_json_lines, parse_json_lines, repairs_of
from cige.data.sentence import LabelledFile, Repair, Sentence, Span, warn_of_repairs
from cige.data.text_files import error_context, read_text, write_text
from cige.errors import DataError
from cige.text.counted import counted
from cige.text.windows import WHOLE, split_windows

COLUMN_FORMATS = ("bmes", "bioes", "bio")
JSON_FORMATS = ("jsonl", "cluener")
FORMATS = COLUMN_FORMATS + JSON_FORMATS
_BY_NAME = {".bmes": "bmes", ".bioes": "bioes", ".bieos": "bioes", ".bio": "bio", ".jsonl": "jsonl", ".json": "jsonl"}


def read_sentences(
    path: str | Path, *, format: str = "auto", repair: bool = False, nested: bool = False
) -> list[Sentence]:
    """Read the labelled sentences of a file (UTF-8; plain, .gz or .xz).

    Args:
        format: a name of `cige.data.documents.FORMATS`, or "auto" to detect it from the contents.
        repair: repair illegal tag transitions (see `tags.repair`) and keep the longest of overlapping spans. A
            RepairWarning contains the number of repairs; `read_labelled` lists them.
        nested: keep all of overlapping spans, which files of tags cannot have but JSON lines and documents can.

    Raises:
        DataError: the file cannot be read or contains no sentence; the message contains the file and the line.
    """
    labelled = read_labelled(path, format=format, repair=repair, nested=nested)
    warn_of_repairs(str(path), labelled.repairs, stacklevel=2)
    return list(labelled.sentences)


def read_labelled(
    path: str | Path, *, format: str = "auto", repair: bool = False, nested: bool = False
) -> LabelledFile:
    """Like `read_sentences`, but returns the detected format and the list of repairs instead of a warning."""
    if format != "auto":
        known(format)
    name = str(path)
    is_read_here = format in FORMATS and not Path(path).is_dir()
    other = _format_of_documents(Path(path)) if format == "auto" else None if is_read_here else format
    if other is not None:
        documents = read_documents(path, format=other, options=ReadingOptions(repair=repair))
        labelled = sentences_of(documents, name=name, format=other, keep_outermost=repair, nested=nested)
    else:
        text = read_text(path)
        is_json = format in JSON_FORMATS or (
            format == "auto" and (looks_like_json_lines(text) or _BY_NAME.get(suffix(Path(path))) == "jsonl")
        )
        if is_json:
            labelled = parse_json_lines(text, name=name, form=format, keep_outermost=repair, nested=nested)
        else:
            scheme = "auto" if format == "auto" else format.upper()
            labelled = parse_columns(text, name=name, scheme=scheme, repair_tags=repair)
    if not labelled.sentences:
        raise DataError(f"{name} contains no sentence; expected lines of `character tag` or of JSON objects")
    return labelled


def write_sentences(path: str | Path, sentences: Iterable[Sentence], *, format: str = "auto") -> None:
    """Write sentences to a file, completely or not at all; it is compressed if its name ends in .gz or .xz.

    Args:
        format: as in `read_sentences`; "auto" uses the file name (.bmes, .bioes, .bio, .jsonl, .csv, ...).

    Raises:
        DataError: a sentence cannot be written in this format; the message contains its number. An old file is
            unchanged then.
    """
    if format == "auto":
        format = _BY_NAME.get(suffix(Path(path)), "auto")
    if format not in FORMATS:
        write_documents(path, (Document(s.text, s.spans) for s in sentences), format=format)
        return
    is_json = format in JSON_FORMATS
    write_text(path, format_json_lines(sentences, format) if is_json else format_columns(sentences, format.upper()))


def _format_of_documents(path: Path) -> str | None:
    """The format of a file that is not read here but as documents; None for columns and JSON lines of sentences."""
    if path.is_dir():
        return find_format(path)
    format = of_name(path)
    if format in COLUMN_FORMATS:
        return None
    if format in (None, "txt", "jsonl"):
        text = read_text(path, again=True)
        format = of_json(text)
        if format is None and not looks_like_json_lines(text):
            first = next((line for line in text.split("\n") if line.strip()), "")
            format = "conll" if len(first.split()) in (3, 4) or first.startswith(DOCSTART) else None
    return None if format in FORMATS else format


def sentences_of(
    documents: Iterable[Document], *, name: str, format: str, keep_outermost: bool, nested: bool = False
) -> LabelledFile:
    """The labelled documents as sentences; documents with line breaks or longer than a window are cut between entities.

    Documents without labels and documents whose labels are only suggested are left out. Raises a DataError if spans
    are not `learnable`, or no document has confirmed labels; `name` is that of the file in messages.
    """
    sentences: list[Sentence] = []
    repairs: list[Repair] = []
    n_unlabelled = n_suggested = 0
    for number, document in enumerate(documents, 1):
        if not document.is_labelled or document.is_suggested:
            n_unlabelled += 1
            n_suggested += document.is_suggested
            continue
        line = document.line or number
        with error_context(f"{name}, line {line}"):
            spans, dropped = learnable(document.spans, document.text, keep_outermost=keep_outermost, nested=nested)
        repairs += repairs_of(dropped, document.text, line)
        sentences += _cut(document.text, spans, line)
    if n_unlabelled and not sentences:
        seen = f" ({counted(n_suggested, 'has', 'have')} a model's predictions, which nobody has submitted)"
        given = counted(n_unlabelled, "text") + (seen if n_suggested else "")
        raise DataError(f"{name}: no labelled text in it, of {given}; label them first")
    return LabelledFile(tuple(sentences), format, tuple(repairs))


def _cut(text: str, spans: list[Span], line: int) -> list[Sentence]:
    if len(text) <= WHOLE and "\n" not in text:
        return [Sentence(text, tuple(spans), line)]
    pieces, start = [], 0
    inside: list[Span] = []
    after = deque(sorted(spans, key=lambda span: span.start))
    for end in (window.core_end for window in split_windows(text)):
        while after and after[0].start < end:
            inside.append(after.popleft())
        if any(span.end > end for span in inside):
            continue  # it is in the next piece
        piece, stripped = text[start:end], text[start:end].rstrip()
        if max((span.end for span in inside), default=0) <= start + len(stripped):
            piece = stripped
        if piece.strip():
            pieces.append(Sentence(piece, tuple(span.shifted(-start) for span in inside), line))
        start, inside = end, []
    return pieces
