"""Labelled text: readers, writers, tag schemes, public data sets, and batches of tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cige.public_names import imported_on_use

if TYPE_CHECKING:
    from cige.data.reading import read_labelled, read_sentences, write_sentences
    from cige.data.sentence import LabelledFile, Repair, RepairWarning, Sentence, Span

__all__ = [
    "LabelledFile",
    "Repair",
    "RepairWarning",
    "Sentence",
    "Span",
    "read_labelled",
    "read_sentences",
    "write_sentences",
]

__getattr__ = imported_on_use(
    __name__,
    sentence=["LabelledFile", "Repair", "RepairWarning", "Sentence", "Span"],
    reading=["read_labelled", "read_sentences", "write_sentences"],
)
