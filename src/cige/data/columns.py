"""Columns: files with one character and its tag per line, and a blank line between sentences.

A line is `character<space or tab>tag`. A space may be written as a space or, as in public Chinese data sets, as U+2423
(␣), which is always read as a space. '#' is an ordinary character. A token of several characters is split into
characters, all of which belong to its entity.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from cige.data.sentence import LabelledFile, Repair, Sentence, Span
from cige.data.tags import illegal_transitions, repair, spans_to_tags, split_tag, tags_to_spans
from cige.data.text_files import error_context
from cige.errors import DataError
from cige.text.counted import counted
from cige.text.visible import one_line

OPEN_BOX = "\u2423"  # ␣, which represents a space
DOCSTART = "-DOCSTART-"
_LINE = re.compile(r"([^ \t]+|[ \t])[ \t]+([^ \t]+)[ \t]*")
_LINE_OF_CONLL = re.compile(r"([^ \t]+|[ \t])(?:[ \t]+([^ \t]+)){1,3}[ \t]*")
_WHITE = re.compile(r"\s")


@dataclass
class _Block:
    """The tokens and tags of one sentence, which begins at line number `line` of the file."""

    line: int
    tokens: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)


def parse_columns(
    text: str, *, name: str, scheme: str = "auto", repair_tags: bool = False, is_conll: bool = False
) -> LabelledFile:
    """Read the text of a column file, whose name is `name` in messages. Raises a DataError with the line number if a
    line has a wrong number of columns, an unknown tag or an illegal transition.

    Args:
        scheme: BMES, BIOES, BIO, or "auto" to detect it from the tags; if several fit, the most permissive one.
        repair_tags: repair illegal transitions as `tags.repair` does and list them, instead of raising an error.
        is_conll: whether there may be other columns between the character and the tag, four in all, and lines that
            begin with -DOCSTART-, which separate sentences like blank ones.
    """
    blocks, lines_of_tags = _split_blocks(text, name, is_conll)
    if scheme == "auto":
        scheme = detect_scheme(lines_of_tags, name)
    for tag, line in lines_of_tags.items():
        with error_context(f"{name}, line {line}"):
            split_tag(tag, scheme)

    sentences, repairs = [], []
    legal: set[tuple[str | None, str | None]] = set()  # a cache of legal pairs, since files repeat a few dozen of them
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
        more = f" (the first of {len(repairs)} such lines)" if len(repairs) > 1 else ""
        raise DataError(
            f"{name}, line {repairs[0].line}: {one_line(repairs[0].what)}{more}; correct the file, or read it with "
            "repair=True (--repair)"
        )
    return LabelledFile(tuple(sentences), scheme.lower(), tuple(repairs))


def format_columns(sentences: Iterable[Sentence], scheme: str = "BMES") -> str:
    """The text of a column file, from which the same texts and spans can be read. Raises a DataError if a sentence
    cannot be written as columns: its text is empty or contains a line feed or U+2423, a span overlaps another or
    exceeds the text, or a label contains whitespace. The message contains its number."""
    parts = []
    for number, sentence in enumerate(sentences, 1):
        with error_context(f"sentence {number} {sentence.text[:20]!r}"):
            parts.append(_format_sentence(sentence, scheme))
    text = "".join(parts)
    # Readers drop one U+FEFF at the start as a byte order mark, so a text that starts with one gets a second.
    return "\ufeff" + text if text.startswith("\ufeff") else text


def _split_blocks(text: str, name: str, is_conll: bool) -> tuple[list[_Block], dict[str, int]]:
    """The sentences of a file, and the first line of each tag."""
    blocks: list[_Block] = []
    lines_of_tags: dict[str, int] = {}
    columns: dict[str, tuple[str, str]] = {}  # a cache, since there are only some thousand characters times a few tags
    block: _Block | None = None
    for number, line in enumerate(text.split("\n"), 1):  # not splitlines: U+0085 and U+2028 are characters here
        known = columns.get(line)
        if known is None:
            content = line.removesuffix("\r")
            if not content.strip(" \t") or (is_conll and content.startswith(DOCSTART)):
                block = None
                continue
            match = (_LINE_OF_CONLL if is_conll else _LINE).fullmatch(content)
            if match is None:
                expected = "2 to 4 columns" if is_conll else "a character and a tag"
                found = counted(len(content.split()), "column")
                raise DataError(f"{name}, line {number}: expected {expected}, found {found} in {content[:40]!r}")
            known = columns[line] = (match[1].replace(OPEN_BOX, " "), match[2])
            lines_of_tags.setdefault(known[1], number)
        if block is None:
            block = _Block(number)
            blocks.append(block)
        block.tokens.append(known[0])
        block.tags.append(known[1])
    return blocks, lines_of_tags


def detect_scheme(lines_of_tags: dict[str, int], name: str) -> str:
    """Detect the tag scheme of a file."""
    first: dict[str, int] = {}
    for tag, line in lines_of_tags.items():
        with error_context(f"{name}, line {line}"):
            first.setdefault(split_tag(tag)[0], line)
    if "M" in first and "I" in first:
        raise DataError(
            f"{name}: M- on line {first['M']} and I- on line {first['I']}; a file must use one prefix for the inside "
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
    if len(text) != len(block.tokens):  # some tokens have several characters: convert token to character offsets
        offsets = [0, *accumulate(map(len, block.tokens))]
        spans = [Span(offsets[span.start], offsets[span.end], span.label) for span in spans]
    return Sentence(text, tuple(spans), block.line)


def _format_sentence(sentence: Sentence, scheme: str) -> str:
    text = sentence.text
    if not text:
        raise DataError("columns cannot contain an empty text; leave it out, or write format jsonl")
    for character, what in (("\n", "a line feed"), (OPEN_BOX, "U+2423, which represents a space")):
        if character in text:
            raise DataError(f"columns cannot contain {what}; write format jsonl")
    for span in sentence.spans:
        if not span.label or _WHITE.search(span.label):
            raise DataError(f"label {span.label!r} is empty or contains whitespace, which columns cannot contain")
    tags = spans_to_tags(len(text), sentence.spans, scheme)
    lines = (f"{character} {tag}\n" for character, tag in zip(text.replace(" ", OPEN_BOX), tags, strict=True))
    return "".join(lines) + "\n"
