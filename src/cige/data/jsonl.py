"""JSON lines: one sentence per line with its spans, in the format of cige or of CLUENER; or one array of such objects.

    jsonl    {"text": "小明在北京", "entities": [{"start": 3, "end": 5, "label": "LOC"}]}
    cluener  {"text": "小明在北京", "label": {"address": {"北京": [[3, 4]]}}}

Offsets count code points; ends are exclusive in jsonl and inclusive in CLUENER's format. If an entity has a "text", it
is compared with the sentence; other keys ("id", "score") are ignored. A discontinuous entity also has "parts", such as
[[0, 4], [6, 8]]: its stretches, of which the first begins at its "start" and the last ends at its "end". An entity may
also be a list, [3, 5, "LOC"], as spaCy and doccano have it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from cige.data.sentence import LabelledFile, Repair, Sentence, Span, show_places, show_span
from cige.data.text_files import error_context, has_surrogate
from cige.errors import DataError
from cige.json_text import JsonObject, to_json
from cige.text.counted import counted
from cige.text.utf16 import utf16_offsets

NO_OVERLAPS = (
    "a character can have only one tag: train with `head: pair_grid`, which finds nested entities, correct the file, "
    "or read it with repair=True (--repair), which keeps the outermost (`cige convert FILE OUTPUT --repair` writes "
    "them)"
)
NO_GAPS = "is discontinuous; only `head: pair_grid` with pair_grid.scores: relations learns such entities"
_CODE_POINTS = "offsets count code points, from 0"
_OTHER_UNITS = f"as in JavaScript and with `cige annotate --offsets utf-16`; here, {_CODE_POINTS}"
_SPLIT_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def looks_like_json_lines(text: str) -> bool:
    """Whether the first line that is not blank is a JSON object, or the text begins as an array of objects."""
    if re.match(r"\s*\[\s*\{", text):
        return True
    first = text.strip().split("\n", 1)[0]
    return first.startswith("{") and isinstance(parsed_or_none(first), dict)


def parse_json_lines(
    text: str, *, name: str, form: str = "auto", keep_outermost: bool = False, nested: bool = False
) -> LabelledFile:
    """Read the text of a JSON-lines file, whose name is `name` in messages; blank lines are ignored. The objects of an
    array have the numbers of their items instead of lines. Raises a DataError with this number if a line is not JSON,
    lacks keys, has offsets outside the text, an entity whose text differs from that of the sentence, or spans that are
    not `learnable`.

    Args:
        form: jsonl, cluener, or "auto" to detect it from the first record.
        keep_outermost: keep the one with the most characters (then the first) of overlapping spans and list the others
            as repairs, instead of raising an error.
        nested: keep all of them, for models that find nested entities.
    """
    sentences, repairs = [], []
    for unit, number, record in json_values(text, name):
        with error_context(f"{name}, {unit} {number}"):
            if not isinstance(record, dict):
                raise DataError(f'expected an object such as {{"text": ...}}, found {type(record).__name__}')
            if form == "auto":
                form = "cluener" if "entities" not in record and isinstance(record.get("label"), dict) else "jsonl"
            sentence_text = _get_text(record)
            read_spans = _spans_of_cluener if form == "cluener" else _spans_of_jsonl
            spans = read_spans(record, sentence_text)
            spans, dropped = learnable(spans, sentence_text, keep_outermost=keep_outermost, nested=nested)
        repairs += repairs_of(dropped, sentence_text, number)
        sentences.append(Sentence(sentence_text, tuple(spans), number))
    return LabelledFile(tuple(sentences), "jsonl" if form == "auto" else form, tuple(repairs))


def format_json_lines(sentences: Iterable[Sentence], form: str = "jsonl") -> str:
    """The text of a JSON-lines file, from which the same texts and spans can be read (overlapping ones with `nested`).
    Raises a DataError if the spans of a sentence exceed its text, or the format cannot hold them; the message contains
    its number."""
    write = _to_cluener if form == "cluener" else _to_jsonl
    lines = []
    for number, sentence in enumerate(sentences, 1):
        with error_context(f"sentence {number} {sentence.text[:20]!r}"):
            check_writable(sentence.text, sentence.spans)
            record = write(sentence)
        # lone surrogates cannot be encoded in UTF-8, but can be escaped in JSON
        lines.append(to_json(record, ensure_ascii=has_surrogate(sentence.text)) + "\n")
    return "".join(lines)


def json_values(text: str, name: str) -> Iterator[tuple[str, int, Any]]:
    """("item", number, value) of a JSON array or of a single value, ("line", number, value) of JSON lines; `name` is
    that of the file in messages. Raises a DataError if the text is not JSON."""
    start, *others = text.strip().split("\n", 1)
    if start.startswith("[") or (start.startswith("{") and others):
        try:
            parsed = json.loads(text)  # of several lines that are objects, only the first one is read here
        except (ValueError, RecursionError) as error:
            if start.startswith("[") and parsed_or_none(start) is None:  # it is not an array per line either
                wanted = "expected one array of objects, or one object per line"
                raise DataError(f"{name}: not JSON ({error}); {wanted}") from None
        else:
            items = parsed if isinstance(parsed, list) and not is_pair(parsed) else [parsed]
            yield from (("item", number, item) for number, item in enumerate(items, 1))
            return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise DataError(f"{name}, line {number}: not JSON ({error}); expected one object per line") from None
            yield "line", number, value


def is_pair(value: Any) -> bool:
    """Whether a JSON value is [text, {...}], the form of spaCy's examples."""
    return isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], dict)


def parsed_or_none(text: str | bytes) -> Any:
    """The value of a JSON text; None if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _get_text(record: JsonObject) -> str:
    text = record.get("text")
    if not isinstance(text, str):
        raise DataError('expected a string under "text"')
    return text


def _spans_of_jsonl(record: JsonObject, text: str) -> list[Span]:
    entities = record.get("entities")
    if not isinstance(entities, list):
        raise DataError('expected a list under "entities" (empty if there are none)')
    return spans_of_list(entities, text)


def spans_of_list(entries: Sequence[Any], text: str, *, keys: Sequence[str] = ("start", "end", "label")) -> list[Span]:
    """The spans of objects with these keys, or of lists [start, end, label]; sorted.

    An object may have the "parts" of a discontinuous entity; its "text", if it has one, is checked. Raises a DataError
    if an entry is neither, or a span does not match the text.
    """
    spans = []
    for entry in entries:
        if isinstance(entry, dict):
            start, end, label = map(entry.get, keys)
            span = with_parts(make_span(start, end, label, text), entry.get("parts"))
            check_surface(span, entry.get("text", span.text_in(text)), text)
            spans.append(span)
        elif isinstance(entry, list) and len(entry) >= 3:
            spans.append(make_span(entry[0], entry[1], entry[2], text))
        else:
            raise DataError(f"expected {{{', '.join(keys)}}} or [start, end, label] for an entity, found {entry!r:.60}")
    return sorted(spans)


def with_parts(span: Span, parts: Any) -> Span:
    """The span with the "parts" of a file, if there are any; raises a DataError if they are not valid for the span."""
    if not parts:
        return span
    is_list = isinstance(parts, list) and all(isinstance(part, list) and len(part) == 2 for part in parts)
    offsets = [offset for part in parts for offset in part] if is_list else []
    ascends = all(type(x) is int for x in offsets) and all(a < b for a, b in pairwise(offsets))
    if len(offsets) < 4 or not ascends or (offsets[0], offsets[-1]) != (span.start, span.end):
        raise DataError(
            f"expected as the parts of [{span.start}, {span.end}) two or more [start, end) in order that do not touch, "
            f"found {to_json(parts, ensure_ascii=True)[:60]}"
        )
    return replace(span, parts=tuple((start, end) for start, end in parts))


def _spans_of_cluener(record: JsonObject, text: str) -> list[Span]:
    labels = record.get("label")
    if not isinstance(labels, dict):
        raise DataError('expected {type: {surface: [[first, last], ...]}} under "label"')
    spans = []
    for label, surfaces in labels.items():
        if not isinstance(surfaces, dict):
            raise DataError(f"expected {{surface: [[first, last], ...]}} for type {label!r}")
        for surface, places in surfaces.items():
            if not isinstance(places, list) or not all(isinstance(p, list) and len(p) == 2 for p in places):
                raise DataError(f"expected [[first, last], ...] for {label} {surface!r}")
            for first, last in places:
                span = make_span(first, last + 1 if type(last) is int else last, label, text)
                check_surface(span, surface, text)
                spans.append(span)
    return spans


def make_span(start: Any, end: Any, label: Any, text: str) -> Span:
    """The span with the offsets and the label of a file; raises a DataError if they are not valid for the text."""
    if type(start) is not int or type(end) is not int:
        raise DataError(f"expected whole numbers as offsets, found {start!r} and {end!r}")
    if not isinstance(label, str) or not label:
        raise DataError(f"expected a name as the label of {start}..{end}, found {label!r}")
    if not 0 <= start < end <= len(text):
        fits = 0 <= start < end <= utf16_offsets(text)(len(text))
        raise DataError(
            f"{label} at [{start}, {end}) does not fit a text of {counted(len(text), 'character')}"
            + (f"; it would if it counted UTF-16 code units, {_OTHER_UNITS}" if fits else "")
        )
    return Span(start, end, label)


def check_surface(span: Span, surface: Any, text: str) -> None:
    """Raise a DataError if the text that a file gives for a span differs from the text at its offsets."""
    in_text = span.text_in(text)
    if surface != in_text:
        if span.parts and surface == text[span.start : span.end]:
            why = "the text of an entity with gaps is that of its parts alone"
        elif isinstance(surface, str) and _units(surface) == _units(text)[2 * span.start : 2 * span.end]:
            why = f"these offsets count UTF-16 code units, {_OTHER_UNITS}"
        else:
            why = _CODE_POINTS
        places = show_places(span)
        raise DataError(f"the text of {span.label} is {surface!r}, but {places} of the sentence is {in_text!r}; {why}")


def _units(text: str) -> bytes:
    """The UTF-16 code units of a text, each of two bytes."""
    return text.encode("utf-16-le", "surrogatepass")


def learnable(spans: Sequence[Span], text: str, *, keep_outermost: bool, nested: bool) -> tuple[list[Span], list[Span]]:
    """The spans that a model can learn from, and those that `without_overlaps` dropped, sorted. Raises a DataError for
    overlapping spans unless `keep_outermost` or `nested`, and for discontinuous ones unless `nested`."""
    if nested:
        return sorted(set(spans)), []
    if broken := [span for span in spans if span.parts]:
        raise DataError(f"{show_span(broken[0], text)} {NO_GAPS}")
    outer, dropped = without_overlaps(list(dict.fromkeys(spans)))  # an entity that is listed twice is one
    if dropped and not keep_outermost:
        raise DataError(f"{show_span(dropped[0], text)} overlaps another entity; {NO_OVERLAPS}")
    return outer, dropped


def without_overlaps(spans: Sequence[Span]) -> tuple[list[Span], list[Span]]:
    """Keep the one with the most characters (then the first) of overlapping spans; characters in gaps do not count.
    Returns (kept, dropped), both sorted."""
    kept: list[Span] = []
    dropped: list[Span] = []
    for span in sorted(spans, key=lambda s: (-s.n_chars, s)):
        (dropped if any(map(span.overlaps, kept)) else kept).append(span)
    return sorted(kept), sorted(dropped)


def repairs_of(dropped: Iterable[Span], text: str, line: int) -> list[Repair]:
    """A repair for each span of a text that `without_overlaps` dropped."""
    return [Repair(line, f"{show_span(span, text)} overlapped a longer entity") for span in dropped]


def check_writable(text: str, spans: Iterable[Span]) -> None:
    """Raise a DataError if a text and its spans would not be the same after writing and reading."""
    if _SPLIT_PAIR.search(text):
        raise DataError("two consecutive surrogates would be read as one character; normalise the text first")
    for span in spans:
        make_span(span.start, span.end, span.label, text)


def span_object(span: Span, text: str) -> JsonObject:
    """A span as JSON lines have it: start, end, label and text, and the parts of a discontinuous entity."""
    parts = {"parts": [list(part) for part in span.parts]} if span.parts else {}
    return {"start": span.start, "end": span.end, "label": span.label, "text": span.text_in(text)} | parts


def _to_jsonl(sentence: Sentence) -> JsonObject:
    return {"text": sentence.text, "entities": [span_object(s, sentence.text) for s in sorted(sentence.spans)]}


def _to_cluener(sentence: Sentence) -> dict[str, object]:
    labels: dict[str, dict[str, list[list[int]]]] = {}
    for span in sorted(sentence.spans):
        if span.parts:
            shown = show_span(span, sentence.text)
            raise DataError(f"{shown} is discontinuous, which CLUENER's format cannot hold; write format jsonl")
        surfaces = labels.setdefault(span.label, {})
        surfaces.setdefault(sentence.text[span.start : span.end], []).append([span.start, span.end - 1])
    return {"text": sentence.text, "label": labels}
