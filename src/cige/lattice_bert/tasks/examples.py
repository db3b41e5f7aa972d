"""The examples of the tasks, with one class per kind; labelled sentences are `cige.data.sentence.Sentence`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TextExample:
    """One text or a pair of texts with a label."""

    id: str  # in submissions
    first: str
    second: str | None = None
    label: str | None = None  # None in test files


@dataclass(frozen=True)
class ChoiceExample:
    """A text and several options, one of which is correct."""

    id: str  # in submissions
    pairs: tuple[tuple[str, str], ...]  # for each option, the two texts that the model reads
    answer: int | None = None  # number of the correct option, from 0; None in test files
    blank: int | None = None  # the code point of the second text of every pair that is read as [MASK], if there is one


@dataclass(frozen=True)
class Answer:
    """An answer that is quoted from a context."""

    text: str
    start: int  # offset in the context in code points; -1 if the context does not contain it
    given_start: int = -1  # according to the file


@dataclass(frozen=True)
class ReadingExample:
    """A question whose answer is a span of a context; training uses the first answer, if the context contains it."""

    id: str  # in submissions
    question: str
    context: str
    answers: tuple[Answer, ...] = ()  # the correct ones; empty in test files
