"""Gold spans as cells of a grid: the counterpart of `data.tag_sets` for heads that score pairs of characters."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from itertools import pairwise

import numpy as np

from cige.data.sentence import Sentence, Span, show_sentence, show_span
from cige.errors import DataError

# The classes of pairs of characters in nn.word_pairs: none, next character, and a type of entity each.
NONE, NEXT = 0, 1
N_RELATIONS = 2  # the types of entities begin here


class GoldSpans:
    """Converts gold spans, which may be nested or overlap, to cells (start, length - 1, number of the label).

    Args:
        labels: the labels of the model.
        band: the maximum length of a span in characters; longer spans have no cell.
    """

    def __init__(self, labels: Sequence[str], band: int):
        self.band = band
        self._numbers = {label: number for number, label in enumerate(labels)}

    def ids(self, sentence: Sentence) -> np.ndarray:
        """int64[G, 3]: the cells of the spans of a sentence. Raises a DataError if a label is not one of the model's,
        such as several labels or the label of text that was not annotated, or a span does not fit the text or the
        grid."""
        where = show_sentence(sentence)
        for span in sentence.spans:
            if span.label not in self._numbers:
                known = ", ".join(self._numbers)
                raise DataError(
                    f"{where} has the label {span.label!r}; a pair grid learns from complete annotations with one of "
                    f"{known}: use `head: crf` for partial annotations"
                )
            if not 0 <= span.start < span.end <= len(sentence.text):
                raise DataError(f"{where}: {span.label} at [{span.start}, {span.end}) does not fit its text")
        fitting = [span for span in sentence.spans if span.end - span.start <= self.band]
        return np.array(sorted(self._cells(fitting, sentence.text, where)), np.int64).reshape(-1, 3)

    def _cells(self, spans: Sequence[Span], text: str, where: str) -> set[tuple[int, int, int]]:
        for span in spans:
            if span.parts:
                raise DataError(
                    f"{where}: {show_span(span, text)} is discontinuous, which scores of spans cannot say: use "
                    "pair_grid.scores: relations"
                )
        return {(span.start, span.end - span.start - 1, self._numbers[span.label]) for span in spans}

    def narrowed(
        self, cells: np.ndarray, spans: Iterable[Span], labelled: Container[tuple[int, int, str]]
    ) -> np.ndarray:
        """The cells unchanged, because each has one label (see `GoldTags.narrowed`)."""
        return cells


class GoldRelations(GoldSpans):
    """Converts gold spans, which may also be discontinuous, to cells of relations: see nn/word_pairs.py.

    A cell (i, n, class) is the pair of the characters i and j = i + n - M + 1: each pair of neighbours of an entity has
    the class NEXT, and the pair of its last and its first character the class of its type.
    """

    def _cells(self, spans: Sequence[Span], text: str, where: str) -> set[tuple[int, int, int]]:
        cells: dict[tuple[int, int], int] = {}
        for span in spans:
            places = [k for a, b in span.pieces for k in range(a, b)]
            for first, second in pairwise(places):
                cells[first, second] = NEXT
            relation = self._numbers[span.label] + N_RELATIONS
            if cells.setdefault((places[-1], places[0]), relation) != relation:
                raise DataError(
                    f"{where}: two entities from {places[0]} to {places[-1] + 1} have different labels; a pair of "
                    "characters has one relation: use pair_grid.scores: spans, or keep one of the two"
                )
        return {(first, second - first + self.band - 1, number) for (first, second), number in cells.items()}
