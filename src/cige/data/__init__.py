"""Labelled text: readers, writers, tag schemes, public data sets, and batches of tensors."""

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
