"""Read CMRC2018 as examples: questions whose answers are spans of a context."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cige.errors import DataError
from cige.lattice_bert.tasks.examples import Answer, ReadingExample
from cige.lattice_bert.tasks.records import Record, find_file, is_document, read_document, read_records, split_names


def read_questions(folder: Path, split: str) -> list[ReadingExample]:
    """Read the questions of a split, from a SQuAD-style file ({"data": [{"paragraphs": ..}]}) or one per line.

    If an answer is not at the offset that the file states, the nearest occurrence in the context is used. If the
    context does not contain an answer, its start is -1: a prediction may equal it, but it cannot be used for training.

    Returns:
        The questions, or [] if there is no such file.

    Raises:
        DataError: a field is missing or of a wrong type, or a question of train or dev has no answer.
    """
    path = find_file(folder, *split_names(split), f"cmrc2018_{split}")
    if path is None:
        return []
    examples: list[ReadingExample] = []
    for record, context, answers in _questions(path):
        name = record.name("id", "query_id", default=len(examples))
        if split != "test" and not answers:
            raise record.wrong("a question without answers; only test files may have these")
        examples.append(ReadingExample(name, record.text("question"), context, tuple(answers)))
    if not examples:
        raise DataError(f"{path} holds no question")
    return examples


def count_misplaced(examples: Sequence[ReadingExample]) -> dict[str, int]:
    """Count the questions whose first answer is not at the stated offset, and those whose context lacks it."""
    first = [example.answers[0] for example in examples if example.answers]
    return {
        "n_answers_moved": sum(answer.start not in (answer.given_start, -1) for answer in first),
        "n_answers_outside": sum(answer.start == -1 for answer in first),
    }


def place_answer(text: str, given_start: int, context: str) -> Answer:
    """The answer with its occurrence in the context that is nearest to `given_start`; -1 if there is none."""
    if given_start >= 0 and text and context.startswith(text, given_start):  # nearly all
        return Answer(text, given_start, given_start)
    places = []
    place = context.find(text) if text else -1
    while place >= 0:
        places.append(place)
        place = context.find(text, place + 1)
    return Answer(text, min(places, key=lambda p: abs(p - given_start), default=-1), given_start)


def _questions(path: Path) -> Iterator[tuple[Record, str, list[Answer]]]:
    """(record with id and question, context, answers) of each question."""
    if not is_document(path):
        for record in read_records(path):
            context = record.text("context")
            pairs = _pairs(record.part("answers")) if "answers" in record.values else []
            yield record, context, [place_answer(text, start, context) for text, start in pairs]
        return
    document: Any = read_document(path)
    if not isinstance(document, dict):
        raise DataError(f"{path}: expected an object with the articles under 'data'")
    for article in Record(document, str(path)).parts("data"):
        for paragraph in article.parts("paragraphs"):
            context = paragraph.text("context")
            for question in paragraph.parts("qas"):
                given = question.parts("answers") if "answers" in question.values else ()
                answers = [(answer.text("text"), answer.get("answer_start", int)) for answer in given]
                yield question, context, [place_answer(text, start, context) for text, start in answers]


def _pairs(answers: Record) -> list[tuple[str, int]]:
    texts, starts = answers.texts("text"), answers.get("answer_start", list)
    if len(texts) != len(starts) or not all(type(start) is int for start in starts):
        raise answers.wrong(f"{len(texts)} texts need as many integers under answer_start, found {starts}")
    return list(zip(texts, starts, strict=True))
