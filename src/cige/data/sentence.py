"""Sentence: a text and its labelled spans; LabelledFile: the sentences of a file, and the repairs needed to read it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

EITHER = "|"
"""The separator of the possible labels of a span: `ORG|LOC`."""
OPEN = "?"
"""The label of a stretch that was not annotated; every prediction for it counts as correct."""


@dataclass(frozen=True, order=True)
class Span:
    """A labelled stretch of text, half-open [start, end) in code points.

    In training data, `label` may be "?" (OPEN: there may be any entities here), or several labels joined by "|"
    (EITHER: one of them, such as "COMPANY|ORG"). A discontinuous entity has its `parts`, two or more stretches that are
    sorted and do not touch; [start, end) is from the first to the last.
    """

    start: int
    end: int
    label: str
    parts: tuple[tuple[int, int], ...] = ()

    def __repr__(self) -> str:
        parts = f", parts={self.parts!r}" if self.parts else ""
        return f"Span(start={self.start!r}, end={self.end!r}, label={self.label!r}{parts})"

    def shifted(self, n: int) -> Span:
        """The same span of a text with `n` more characters before it."""
        return Span(self.start + n, self.end + n, self.label, tuple((a + n, b + n) for a, b in self.parts))

    @property
    def pieces(self) -> tuple[tuple[int, int], ...]:
        """Its parts; of a span without gaps, itself."""
        return self.parts or ((self.start, self.end),)

    @property
    def n_chars(self) -> int:
        """How many characters it has, without those in its gaps."""
        return sum(end - start for start, end in self.pieces)

    def text_in(self, text: str) -> str:
        """The characters of the span in its text."""
        return "".join(text[a:b] for a, b in self.pieces)

    def overlaps(self, other: Span) -> bool:
        """Whether the two share a character; one that lies in a gap of the other does not overlap it."""
        if self.end <= other.start or other.end <= self.start:
            return False
        return any(a < end and start < b for a, b in self.pieces for start, end in other.pieces)


def show_span(span: Span, text: str) -> str:
    """A span as messages show it: its own characters, and the offsets of its parts if it has gaps."""
    return f"{span.label} {span.text_in(text)!r} at {show_places(span)}"


def show_places(span: Span) -> str:
    """The offsets of a span as messages show them: "[0, 7)", or those of its parts: "[0, 2), [5, 7)"."""
    return ", ".join(f"[{start}, {end})" for start, end in span.pieces)


@dataclass(frozen=True)
class Sentence:
    """A text and its gold spans, sorted; `line` is its first line in its file, from 1.

    Spans do not overlap unless they were read with `nested`, for a model that finds nested entities.
    """

    text: str
    spans: tuple[Span, ...] = ()
    line: int | None = None


def show_sentence(sentence: Sentence) -> str:
    """A sentence as messages name it: by its first characters, and by its line if it has one."""
    return f"the sentence {sentence.text[:30]!r}" + (f" (line {sentence.line})" if sentence.line else "")


class RepairWarning(UserWarning):
    """A file was read with repair=True, and parts of it were repaired."""


@dataclass(frozen=True)
class Repair:
    """One repair: the `line` of the file, from 1, and `what` was wrong."""

    line: int
    what: str


@dataclass(frozen=True)
class LabelledFile:
    """The content of a file of labelled sentences.

    Attributes:
        sentences: the sentences, in file order.
        format: bmes, bioes, bio, jsonl or cluener, as detected or as requested.
        repairs: every repair of repair=True, in file order; empty for a file without errors.
    """

    sentences: tuple[Sentence, ...]
    format: str
    repairs: tuple[Repair, ...] = ()


def warn_of_repairs(name: str, repairs: Sequence[Repair], *, stacklevel: int = 1) -> None:
    """Warn with the number of repairs in a file and the first of them, if there are any.

    Args:
        name: the name of the file.
        stacklevel: 1 for the caller of this function, 2 for its caller, and so on.
    """
    if repairs:
        warnings.warn(
            f"{name}: {len(repairs)} place(s) repaired, the first on line {repairs[0].line}: {repairs[0].what}",
            RepairWarning,
            stacklevel=stacklevel + 1,
        )
