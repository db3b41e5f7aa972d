"""Examples: what the tasks read, one class for each kind; labelled sentences are `cige.data.sentence.Sentence`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TextExample:
    """A text, or two, of one class.

    Attributes:
        id: as submissions name it.
        first, second: the texts; `second` is None where there is one only.
        label: None in test files.
    """

    id: str
    first: str
    second: str | None = None
    label: str | None = None


@dataclass(frozen=True)
class ChoiceExample:
    """A text and several options, one of them right.

    Attributes:
        id: as submissions name it.
        pairs: the two texts that the model reads for each option.
        answer: which option is right, from 0; None in test files.
        blank: code point of the second text of every pair where the model reads [MASK]; None where nowhere.
    """

    id: str
    pairs: tuple[tuple[str, str], ...]
    answer: int | None = None
    blank: int | None = None


@dataclass(frozen=True)
class Answer:
    """An answer in the words of a context.

    Attributes:
        start: where it begins there, in code points; -1 where it is nowhere.
        given_start: where the file says that it does.
    """

    text: str
    start: int
    given_start: int = -1


@dataclass(frozen=True)
class ReadingExample:
    """A question whose answer is a stretch of a context.

    Attributes:
        id: as submissions name it.
        answers: any of them is right; the first is learnt from, unless it is nowhere in the context. None of them in
            test files.
    """

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...] = ()
