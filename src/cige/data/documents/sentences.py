"""Convert documents to labelled sentences, for training and evaluation on the files of other tools."""

from __future__ import annotations

from collections.abc import Iterable

from cige.data.documents.document import Document
from cige.data.jsonl import NO_GAPS, NO_OVERLAPS, outermost, repairs_of, show_span
from cige.data.labelled import LabelledFile, Repair
from cige.data.sentence import Sentence, Span
from cige.errors import DataError
from cige.text.counted import counted
from cige.text.windows import split_windows

PIECE = 128  # maximum number of characters of a sentence that is cut from a longer document


def sentences_of(
    documents: Iterable[Document], *, name: str, format: str, keep_outermost: bool, nested: bool = False
) -> LabelledFile:
    """The labelled documents as sentences; documents with line breaks or longer than a window are cut between entities.

    Documents without labels and documents whose labels are only suggested are left out.

    Args:
        name: the file name for messages.
        keep_outermost: whether to keep the longest of overlapping spans and list the others as repairs.
        nested: whether to keep all of them.

    Raises:
        DataError: spans overlap, and `keep_outermost` and `nested` are false; a span is discontinuous, and `nested` is
            false; or no document has confirmed labels.
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
        broken = [span for span in document.spans if span.parts]
        if broken and not nested:
            raise DataError(f"{name}, line {line}: {show_span(broken[0], document.text)} {NO_GAPS}")
        spans, dropped = (sorted(set(document.spans)), []) if nested else outermost(document.spans)
        if dropped and not keep_outermost:
            shown = show_span(dropped[0], document.text)
            raise DataError(f"{name}, line {line}: {shown} overlaps another entity; {NO_OVERLAPS}")
        repairs += repairs_of(dropped, document.text, line)
        sentences += _cut(document.text, spans, line)
    if n_unlabelled and not sentences:
        seen = (
            f" ({counted(n_suggested, 'has', 'have')} a model's predictions, which nobody has submitted)"
            if n_suggested
            else ""
        )
        raise DataError(f"{name}: no labelled text in it, of {counted(n_unlabelled, 'text')}{seen}; label them first")
    return LabelledFile(tuple(sentences), format, tuple(repairs))


def _cut(text: str, spans: list[Span], line: int) -> list[Sentence]:
    if len(text) <= PIECE and "\n" not in text:
        return [Sentence(text, tuple(spans), line)]
    pieces, start, rest = [], 0, list(spans)
    for end in [window.core_end for window in split_windows(text, whole=2 * PIECE, core=PIECE)]:
        if any(span.start < end < span.end for span in rest):
            continue  # it is in the next piece
        inside = [span for span in rest if span.end <= end]
        rest = [span for span in rest if span.end > end]
        piece, stripped = text[start:end], text[start:end].rstrip()
        if max((span.end for span in inside), default=0) <= start + len(stripped):
            piece = stripped
        if piece.strip():
            pieces.append(Sentence(piece, tuple(span.shifted(-start) for span in inside), line))
        start = end
    return pieces
