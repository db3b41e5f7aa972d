"""Read the classification tasks of CLUE as examples, with one function for the records of each task."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cige.lattice_bert.tasks.examples import TextExample
from cige.lattice_bert.tasks.records import Record, read_records

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
