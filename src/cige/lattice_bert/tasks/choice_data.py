"""Read ChID and C3 as examples of a text with several options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cige.errors import DataError
from cige.lattice_bert.tasks.examples import ChoiceExample
from cige.lattice_bert.tasks.records import Record, find_file, is_document, read_document, read_records, split_names

REACH = 32  # characters that are read on either side of a blank (appendix C.2)
MARK = "_"  # replaces blanks in the text; the model reads [MASK] for the blank to be filled
_BLANK = re.compile(r"#idiom\d*#")


def read_idioms(folder: Path, split: str) -> list[ChoiceExample]:
    """Read ChID: one example per blank; the options are idioms, each read before the text around the blank.

    The files are either CLUE's, {"content": [texts], "candidates": [idioms of all blanks]} and SPLIT_answer.json with
    the answer to each "#idiom000378#", or the original ones, {"content", "candidates": [idioms of each blank],
    "answer"}. Returns [] if there is no such file.
    """
    path = find_file(folder, *split_names(split))
    if path is None:
        return []
    answer_path = find_file(folder, f"{split}_answer")
    answers = None if answer_path is None else _answers_by_blank(answer_path)
    examples: list[ChoiceExample] = []
    for number, record in enumerate(read_records(path)):
        if isinstance(record.values.get("content"), list):
            if answers is None and split != "test":
                raise record.wrong(f"needs {split}_answer.json with its answers, which is not in {folder}")
            examples += _clue_blanks(record, answers)
        else:
            examples += _original_blanks(record, number, is_labelled=split != "test")
    return examples


def read_dialogues_and_texts(folder: Path, split: str) -> list[ChoiceExample]:
    """Read C3: one example per question; the end of a long document is cut off.

    The files are either the original ones, c3-m-SPLIT.json and c3-d-SPLIT.json, or have one question per line,
    {"context", "question", "choices", "answer"}. Returns [] if there is no such file.
    """
    path = find_file(folder, *split_names(split))
    parts = [find_file(folder, f"c3-{kind}-{split}", f"{kind}-{split}") for kind in "md"]
    paths = [path] if path is not None else [part for part in parts if part is not None]
    records = [record for path in paths for record in _c3_questions(path)]
    return [_c3_example(record, number, is_labelled=split != "test") for number, record in enumerate(records)]


def _clue_blanks(record: Record, answers: dict[str, int] | None) -> Iterator[ChoiceExample]:
    candidates = record.texts("candidates")
    for text in record.texts("content"):
        for blank in _BLANK.finditer(text):
            answer = None if answers is None else answers.get(blank[0])
            if answers is not None and (answer is None or not 0 <= answer < len(candidates)):
                raise record.wrong(f"the answer to {blank[0]} is {answer}, expected 0 to {len(candidates) - 1}")
            yield _idiom_example(blank[0], text, blank, candidates, answer)


def _original_blanks(record: Record, number: int, *, is_labelled: bool) -> Iterator[ChoiceExample]:
    text, candidates = record.text("content"), record.get("candidates", list)
    blanks = list(_BLANK.finditer(text))
    answers = record.get("answer", list) if is_labelled or "answer" in record.values else [None] * len(blanks)
    if not len(blanks) == len(candidates) == len(answers):
        raise record.wrong(
            f"{len(blanks)} blanks (#idiom#) in content, {len(candidates)} lists of candidates and {len(answers)} "
            "answers; expected as many of each"
        )
    name = record.name("id", default=number)
    for k, (blank, options, answer) in enumerate(zip(blanks, candidates, answers, strict=True)):
        if not isinstance(options, list) or not all(isinstance(option, str) for option in options) or not options:
            raise record.wrong(f"candidates[{k}] is {options!r}, expected a list of idioms")
        if answer is not None and (type(answer) is not int or not 0 <= answer < len(options)):
            raise record.wrong(f"answer[{k}] is {answer!r}, expected 0 to {len(options) - 1}")
        yield _idiom_example(f"{name}-{k}", text, blank, options, answer)


def _idiom_example(name: str, text: str, blank: re.Match[str], options: list[str], answer: int | None) -> ChoiceExample:
    before = _BLANK.sub(MARK, text[: blank.start()])[-REACH:]
    after = _BLANK.sub(MARK, text[blank.end() :])[:REACH]
    read = before + MARK + after
    return ChoiceExample(name, tuple((option, read) for option in options), answer, blank=len(before))


def _answers_by_blank(path: Path) -> dict[str, int]:
    answers: Any = read_document(path)
    if not isinstance(answers, dict) or not all(type(answer) is int for answer in answers.values()):
        raise DataError(f'{path}: expected an object such as {{"#idiom000378#": 5}}')
    return answers


def _c3_questions(path: Path) -> Iterator[Record]:
    if not is_document(path):
        yield from read_records(path)
        return
    for number, entry in enumerate(read_document(path)):
        where = f"{path}, document {number}"
        if not (isinstance(entry, list) and len(entry) >= 2 and all(isinstance(part, list) for part in entry[:2])):
            raise DataError(f"{where}: expected [[lines], [questions], id]")
        context = "\n".join(map(str, entry[0]))
        for k, question in enumerate(entry[1]):
            values = question if isinstance(question, dict) else {}
            yield Record({"context": context, **values}, f"{where}, question {k}")


def _c3_example(record: Record, number: int, *, is_labelled: bool) -> ChoiceExample:
    choices = record.texts("choices" if "choices" in record.values else "choice")
    answer: int | None = None
    if is_labelled or "answer" in record.values:
        right = record.text("answer")
        if right not in choices:
            raise record.wrong(f"the answer {right!r} is not among the choices {', '.join(choices)}")
        answer = choices.index(right)
    context, question = record.text("context"), record.text("question")
    name = record.name("id", default=number)
    return ChoiceExample(name, tuple((context, f"{question} {choice}") for choice in choices), answer)
