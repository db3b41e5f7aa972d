"""Columns: one character and its tag a line, a blank line between sentences.

A line is `character<space or tab>tag`. A space as a character may be written as it is or, as public sets of Chinese
do, as U+2423 (␣), which always reads as a space. '#' is a character like any other. A token of several characters
is taken apart, its entity covering all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from cige.data.labelled import LabelledFile, Repair
from cige.data.sentence import Sentence, Span
from cige.data.tags import illegal_transitions, repair, spans_to_tags, split_tag, tags_to_spans
from cige.errors import DataError

OPEN_BOX = "\u2423"  # ␣, how a space is written in a column
_LINE = re.compile(r"([^ \t]+|[ \t])[ \t]+([^ \t]+)[ \t]*")
_WHITE = re.compile(r"\s")


@dataclass
class _Block:
    """The lines of one sentence as they stand in the file: tokens and tags, from line number `line` on."""

    line: int
    tokens: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)


def parse_columns(text: str, *, name: str, scheme: str = "auto", repair_tags: bool = False) -> LabelledFile:
    """Read the text of a column file; `name` stands for the file in messages.

    `scheme`: BMES, BIOES, BIO, or "auto" to tell it from the tags; where several fit, the one that allows most.
    `repair_tags`: mend illegal transitions by the rule of `tags.repair` and list them, instead of refusing the file.

    Raises DataError with the line for a wrong number of columns, an unknown tag or an illegal transition.
    """
    blocks, lines_of_tags = _split_blocks(text, name)
    if scheme == "auto":
        scheme = _detect_scheme(lines_of_tags, name)
    for tag, line in lines_of_tags.items():
        try:
            split_tag(tag, scheme)
        except DataError as error:
            raise DataError(f"{name}, line {line}: {error}") from None

    sentences, repairs = [], []
    legal: set[tuple[str | None, str | None]] = set()  # pairs known to be legal: a file repeats a few dozen of them
    for block in blocks:
        pairs = {*zip([None, *block.tags], [*block.tags, None], strict=True)}
        tags: Sequence[str] = block.tags
        if not pairs <= legal:
            faults = illegal_transitions(tags, scheme)
            if faults:
                last = len(tags) - 1
                repairs += [Repair(block.line + min(fault.position, last), fault.why) for fault in faults]
                tags = repair(tags, scheme)
            else:
                legal |= pairs
        sentences.append(_to_sentence(block, tags, scheme))
    if repairs and not repair_tags:
        more = f" (the first of {len(repairs)} such places)" if len(repairs) > 1 else ""
        raise DataError(
            f"{name}, line {repairs[0].line}: {repairs[0].what}{more}; mend the file, or read it with repair=True"
        )
    return LabelledFile(tuple(sentences), scheme.lower(), tuple(repairs))


def format_columns(sentences: Iterable[Sentence], scheme: str = "BMES") -> str:
    """The text of a column file; reading it gives the same texts and spans back.

    Raises DataError with the number of a sentence that columns cannot hold: an empty text, a line feed or U+2423 in
    it, a span that overlaps or leaves it, a label with whitespace.
    """
    parts = []
    for number, sentence in enumerate(sentences, 1):
        try:
            parts.append(_format_sentence(sentence, scheme))
        except DataError as error:
            raise DataError(f"sentence {number} {sentence.text[:20]!r}: {error}") from None
    text = "".join(parts)
    # A reader takes one U+FEFF at the start for a byte order mark, so a text that starts with one gets a second.
    return "\ufeff" + text if text.startswith("\ufeff") else text


def _split_blocks(text: str, name: str) -> tuple[list[_Block], dict[str, int]]:
    """The sentences of a file, and each tag with the line where it first stands."""
    blocks: list[_Block] = []
    lines_of_tags: dict[str, int] = {}
    columns: dict[str, tuple[str, str]] = {}  # lines repeat: some thousand characters times a few tags
    block: _Block | None = None
    for number, line in enumerate(text.split("\n"), 1):  # not splitlines: U+0085 and U+2028 are characters here
        known = columns.get(line)
        if known is None:
            content = line.removesuffix("\r")
            if not content.strip(" \t"):
                block = None
                continue
            match = _LINE.fullmatch(content)
            if match is None:
                n_columns = len(content.split())
                raise DataError(
                    f"{name}, line {number}: expected a character and a tag, found {n_columns} "
                    f"column{'' if n_columns == 1 else 's'} in {content[:40]!r}"
                )
            known = columns[line] = (match[1].replace(OPEN_BOX, " "), match[2])
            lines_of_tags.setdefault(known[1], number)
        if block is None:
            block = _Block(number)
            blocks.append(block)
        block.tokens.append(known[0])
        block.tags.append(known[1])
    return blocks, lines_of_tags


def _detect_scheme(lines_of_tags: dict[str, int], name: str) -> str:
    """The scheme that the tags of a file are written in."""
    first: dict[str, int] = {}
    for tag, line in lines_of_tags.items():
        try:
            first.setdefault(split_tag(tag)[0], line)
        except DataError as error:
            raise DataError(f"{name}, line {line}: {error}") from None
    if "M" in first and "I" in first:
        raise DataError(
            f"{name}: M- on line {first['M']} and I- on line {first['I']}; a file has one way to tag the inside "
            "of an entity (M- in BMES, I- in BIOES and BIO)"
        )
    if "M" in first:
        return "BMES"
    if "E" in first or "S" in first:
        return "BIOES" if "I" in first else "BMES"
    return "BIO"


def _to_sentence(block: _Block, tags: Sequence[str], scheme: str) -> Sentence:
    spans = tags_to_spans(tags, scheme)
    text = "".join(block.tokens)
    if len(text) != len(block.tokens):  # some token has several characters: from token to character offsets
        offsets = [0, *accumulate(map(len, block.tokens))]
        spans = [Span(offsets[span.start], offsets[span.end], span.label) for span in spans]
    return Sentence(text, tuple(spans), block.line)


def _format_sentence(sentence: Sentence, scheme: str) -> str:
    text = sentence.text
    if not text:
        raise DataError("columns cannot hold an empty text; leave it out, or write format jsonl")
    for character, what in (("\n", "a line feed"), (OPEN_BOX, "U+2423, which stands for a space there")):
        if character in text:
            raise DataError(f"columns cannot hold {what}; write format jsonl")
    for span in sentence.spans:
        if not span.label or _WHITE.search(span.label):
            raise DataError(f"label {span.label!r} is empty or has whitespace, which columns cannot hold")
    tags = spans_to_tags(len(text), sentence.spans, scheme)
    lines = (f"{character} {tag}\n" for character, tag in zip(text.replace(" ", OPEN_BOX), tags, strict=True))
    return "".join(lines) + "\n"
