"""Submissions: write answers in CLUE's formats, and labelled sentences in the format of their data."""

from __future__ import annotations

from collections.abc import Sequence

from cige.data.jsonl import format_json_lines
from cige.data.sentence import Sentence, Span
from cige.json_text import to_json
from cige.lattice_bert.tasks.examples import Answer, ChoiceExample, ReadingExample, TextExample


def labels(examples: Sequence[TextExample | ChoiceExample], answers: Sequence[str | int]) -> str:
    """One {"id": 0, "label": "1"} per line; an id that is a number is one there, as in the test files."""
    ids = [int(e.id) if e.id.isascii() and e.id.isdigit() else e.id for e in examples]
    return "".join(to_json({"id": name, "label": x}) + "\n" for name, x in zip(ids, answers, strict=True))


def options(examples: Sequence[ChoiceExample], answers: Sequence[int]) -> str:
    """For C3, one {"id": 0, "label": 2} per line, with the number of the option from 0.

    For ChID, whose blanks have names such as "#idiom000378#", one object {blank: number}.
    """
    if all(example.id.startswith("#") for example in examples):
        return _object({e.id: answer for e, answer in zip(examples, answers, strict=True)})
    return labels(examples, answers)


def texts(examples: Sequence[ReadingExample], answers: Sequence[Answer]) -> str:
    """CMRC2018: one object {question id: answer}."""
    return _object({e.id: answer.text for e, answer in zip(examples, answers, strict=True)})


def entities(examples: Sequence[Sentence], answers: Sequence[Sequence[Span]]) -> str:
    """One {"text": .., "label": {type: {surface: [[first, last]]}}} per line, CLUENER's format."""
    sentences = [Sentence(e.text, tuple(spans)) for e, spans in zip(examples, answers, strict=True)]
    return format_json_lines(sentences, "cluener")


def words(examples: Sequence[Sentence], answers: Sequence[Sequence[Span]]) -> str:
    """One sentence per line with a space between words, as in SIGHAN's files.

    A character that no word covers (because it has no word piece) is a word of its own.
    """
    lines = []
    for example, spans in zip(examples, answers, strict=True):
        parts, end = [], 0
        for span in spans:
            parts += [example.text[end : span.start], example.text[span.start : span.end]]
            end = span.end
        lines.append(" ".join(filter(None, [*parts, example.text[end:]])) + "\n")
    return "".join(lines)


def _object(answers: dict[str, object]) -> str:
    return to_json(answers, indent=1) + "\n"
