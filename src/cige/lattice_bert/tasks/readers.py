"""Read the files of each task as examples. CLUE's tasks and the labelled sentences; [] if a split has no file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from cige.data.reading import read_sentences
from cige.data.sentence import Sentence, Span
from cige.data.text_files import read_text
from cige.errors import DataError
from cige.lattice_bert.tasks.examples import Answer, ChoiceExample, ReadingExample, TextExample
from cige.lattice_bert.tasks.records import Record, find_file, is_document, read_document, read_records, split_names

NO_MAJORITY = "-"  # the label of OCNLI and CMNLI where annotators disagreed


def read_text_examples(
    path: Path, make: Callable[[Record, int], TextExample], *, is_labelled: bool
) -> list[TextExample]:
    """Read the examples of a file, except those without an agreed label (which are not scored officially either).

    Args:
        make: makes an example of a record and its number in the file.
        is_labelled: whether each example must have a label.

    Raises:
        DataError: a field is missing or has a wrong type; the message names the file and line.
    """
    examples = []
    for number, record in enumerate(read_records(path)):
        example = make(record, number)
        if is_labelled and example.label is None:
            raise record.wrong(f"the field 'label' is missing; it has {', '.join(record.values)}")
        if example.label != NO_MAJORITY:
            examples.append(example)
    return examples


def sentence_pair(record: Record, number: int) -> TextExample:
    """AFQMC, OCNLI and CMNLI: {"sentence1", "sentence2", "label"}."""
    label = _label(record, "label", "gold_label")
    return TextExample(_id(record, number), record.text("sentence1"), record.text("sentence2"), label)


def news_title(record: Record, number: int) -> TextExample:
    """TNEWS: {"sentence", "keywords", "label"}; the keywords are the second text."""
    keywords = record.text("keywords") if "keywords" in record.values else ""
    return TextExample(_id(record, number), record.text("sentence"), keywords or None, _label(record))


def description(record: Record, number: int) -> TextExample:
    """IFLYTEK: {"sentence", "label"}, the description of an app."""
    return TextExample(_id(record, number), record.text("sentence"), None, _label(record))


def keywords_of_abstract(record: Record, number: int) -> TextExample:
    """CSL: {"keyword": [...], "abst", "label"}; all keywords are the first text. Words never cross a space."""
    return TextExample(_id(record, number), " ".join(record.texts("keyword")), record.text("abst"), _label(record))


def pronoun(record: Record, number: int) -> TextExample:
    """CLUEWSC2020: {"text", "target": {span1, span2}, "label"}; does pronoun span2 refer to span1?

    As in CLUE's baseline, the text is read with span1 between underscores and span2 in square brackets.
    """
    text, target = record.text("text"), record.part("target")
    marks = []
    for name, (left, right) in (("span1", "__"), ("span2", "[]")):
        start, surface = target.get(f"{name}_index", int), target.text(f"{name}_text")
        end = start + len(surface)
        if start < 0 or text[start:end] != surface:
            raise target.wrong(f"{name} is {surface!r} at {start}, but the text has {text[max(0, start) : end]!r}")
        marks += [(start, 1, left), (end, 0, right)]
    marked, last = "", 0
    for place, _, mark in sorted(marks):
        marked += text[last:place] + mark
        last = place
    return TextExample(_id(record, number), marked + text[last:], None, _label(record))


def _id(record: Record, number: int) -> str:
    return record.name("id", "idx", default=number)


def _label(record: Record, *keys: str) -> str | None:
    label = next((record.values[key] for key in keys or ("label",) if key in record.values), None)
    if label in (None, ""):
        return None
    return str(label).lower() if isinstance(label, bool) else str(label)


REACH = 32  # characters that are read on either side of a blank (appendix C.2)
MARK = "_"  # replaces blanks in the text; the model reads [MASK] for the blank to be filled
_BLANK = re.compile(r"#idiom\d*#")


def read_idioms(folder: Path, split: str) -> list[ChoiceExample]:
    """Read ChID: one example per blank; the options are idioms, each read before the text around the blank.

    The files are either CLUE's, {"content": [texts], "candidates": [idioms of all blanks]} and SPLIT_answer.json with
    the answer to each "#idiom000378#", or the original ones, {"content", "candidates": [idioms of each blank],
    "answer"}.
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
    {"context", "question", "choices", "answer"}.
    """
    path = find_file(folder, *split_names(split))
    parts = [find_file(folder, f"c3-{kind}-{split}", f"{kind}-{split}") for kind in "md"]
    paths = [path] if path is not None else filter(None, parts)
    records = [record for path in paths for record in _c3_questions(path)]
    return [_c3_example(record, number, is_labelled=split != "test") for number, record in enumerate(records)]


def _clue_blanks(record: Record, answers: dict[str, int] | None) -> Iterator[ChoiceExample]:
    candidates = _options(record, "candidates")
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


def _options(record: Record, key: str) -> list[str]:
    options = record.texts(key)
    if not options:
        raise record.wrong(f"{key} is empty; expected one option or more")
    return options


def _answers_by_blank(path: Path) -> dict[str, int]:
    answers: Any = read_document(path)
    if not isinstance(answers, dict) or not all(type(answer) is int for answer in answers.values()):
        raise DataError(f'{path}: expected an object such as {{"#idiom000378#": 5}}')
    return answers


def _c3_questions(path: Path) -> Iterator[Record]:
    if not is_document(path):
        yield from read_records(path)
        return
    documents = read_document(path)
    if not isinstance(documents, list):
        raise DataError(f"{path}: expected a list of documents [[lines], [questions], id]")
    for number, entry in enumerate(documents):
        where = f"{path}, document {number}"
        if not (isinstance(entry, list) and len(entry) >= 2 and all(isinstance(part, list) for part in entry[:2])):
            raise DataError(f"{where}: expected [[lines], [questions], id]")
        context = "\n".join(map(str, entry[0]))
        for k, question in enumerate(entry[1]):
            values = question if isinstance(question, dict) else {}
            yield Record({"context": context, **values}, f"{where}, question {k}")


def _c3_example(record: Record, number: int, *, is_labelled: bool) -> ChoiceExample:
    choices = _options(record, "choices" if "choices" in record.values else "choice")
    answer: int | None = None
    if is_labelled or "answer" in record.values:
        right = record.text("answer")
        if right not in choices:
            raise record.wrong(f"the answer {right!r} is not among the choices {', '.join(choices)}")
        answer = choices.index(right)
    context, question = record.text("context"), record.text("question")
    name = record.name("id", default=number)
    return ChoiceExample(name, tuple((context, f"{question} {choice}") for choice in choices), answer)


def read_questions(folder: Path, split: str) -> list[ReadingExample]:
    """Read the questions of a split, from a SQuAD-style file ({"data": [{"paragraphs": ..}]}) or one per line.

    If an answer is not at the offset that the file states, the nearest occurrence in the context is used. If the
    context does not contain an answer, its start is -1: a prediction may equal it, but it cannot be used for training.

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
    places = [match.start() for match in re.finditer(f"(?={re.escape(text)})", context)] if text else []
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


WORD = "WORD"  # the only label of segmentation
N_DEV, DEV_SHARE = 2000, 10  # without a dev file, dev is the last 2,000 sentences of train, but at most a tenth of it


def read_segmented(folder: Path, split: str) -> list[Sentence]:
    """Read one sentence per line, with words between white space as spans; without a dev file, dev ends train."""
    return _read_split(folder, split, _read_words)


def read_entities(folder: Path, split: str) -> list[Sentence]:
    """Read sentences in any format of `read_sentences`; without a dev file, dev is the end of train."""
    return _read_split(folder, split, read_sentences)


def _read_split(folder: Path, split: str, read: Callable[[Path], list[Sentence]]) -> list[Sentence]:
    path = find_file(folder, split)
    if path is not None and (split != "train" or find_file(folder, "dev")):
        return read(path)
    train = find_file(folder, "train")
    if split == "test" or train is None:
        return []
    sentences = read(train)
    n_dev = min(N_DEV, len(sentences) // DEV_SHARE)
    return sentences[len(sentences) - n_dev :] if split == "dev" else sentences[: len(sentences) - n_dev]


def _read_words(path: Path) -> list[Sentence]:
    lines = enumerate(read_text(path).split("\n"), 1)
    sentences = [_sentence(line.split(), number) for number, line in lines if line.strip()]
    if not sentences:
        raise DataError(f"{path} contains no sentence; expected one sentence per line with spaces between words")
    return sentences


def _sentence(words: list[str], line: int) -> Sentence:
    ends = accumulate(map(len, words))
    spans = tuple(Span(end - len(word), end, WORD) for word, end in zip(words, ends, strict=True))
    return Sentence("".join(words), spans, line)
