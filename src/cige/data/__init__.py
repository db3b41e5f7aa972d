"""Labelled text: readers, writers, tag schemes, public data sets, and batches of tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cige.public_names import imported_on_use

if TYPE_CHECKING:
    from cige.data.labelled import LabelledFile, Repair, RepairWarning
    from cige.data.reading import read_labelled, read_sentences, write_sentences
    from cige.data.sentence import Sentence, Span

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
    labelled=["LabelledFile", "Repair", "RepairWarning"],
    sentence=["Sentence", "Span"],
    reading=["read_labelled", "read_sentences", "write_sentences"],
)
