"""Tag schemes: convert entity spans to one tag per character, and back.

    BMES    B-X M-X E-X for an entity of several characters, S-X for an entity of one character, O outside
    BIOES   like BMES, with I-X instead of M-X
    BIO     B-X for the first character, I-X for the others, O outside

"Strict" means that an entity counts only if it is complete and has one type, as in seqeval's strict IOBES and IOB2
modes. "Lenient" refers to the scorer of the published lattice models; the two differ only for ill-formed tags.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from cige.data.sentence import Span, show_places
from cige.errors import DataError
from cige.lexicon.user_word import UNKNOWN_TYPE
from cige.text.counted import counted

Scheme: TypeAlias = Literal["BMES", "BIOES", "BIO"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)
_PREFIXES = {"BMES": "BMES", "BIOES": "BIES", "BIO": "BI"}  # in the order of `tag_set`


class IllegalTransition(NamedTuple):
    """A tag that may not follow the previous one.

    Attributes:
        position: index of `tag`; len(tags) at the end of the text.
        previous: the previous tag, or None at the start of the text.
        tag: the tag, or None at the end of the text.
        why: the violated rule as a message.
    """

    position: int
    previous: str | None
    tag: str | None
    why: str


@lru_cache(maxsize=4096)  # a file repeats a few dozen tags millions of times
def split_tag(tag: str, scheme: str | None = None) -> tuple[str, str]:
    """Return (prefix, label) of a tag: ("B", "PER") for "B-PER", ("O", "") for "O". Raises a DataError if `scheme`
    (None: any of the schemes) does not have this tag."""
    if tag == "O":
        return "O", ""
    prefix, dash, label = tag.partition("-")
    allowed = "BIMES" if scheme is None else _prefixes(scheme)
    if len(prefix) != 1 or prefix not in allowed or not dash or not label:
        wanted = ", ".join(f"{p}-TYPE" for p in allowed)
        raise DataError(f"unknown tag {tag!r}: expected O or {wanted}{'' if scheme is None else f' (scheme {scheme})'}")
    return prefix, label


def tag_set(labels: Iterable[str], scheme: str = "BMES") -> list[str]:
    """All tags of some labels: "O", then B- M- E- S- (BIOES: B- I- E- S-; BIO: B- I-) for each sorted label."""
    prefixes = _prefixes(scheme)
    return ["O", *(f"{prefix}-{label}" for label in sorted(set(labels)) for prefix in prefixes)]


def are_tags_of(tags: Sequence[str], labels: Iterable[str], scheme: str) -> bool:
    """Whether a model with these labels may have these tags: those of `tag_set`, with or without those of UNKNOWN_TYPE.

    UNKNOWN_TYPE marks names of a type that only the user knows, and is not one of the model's labels.
    """
    labels = list(labels)
    return list(tags) in (tag_set(labels, scheme), tag_set([*labels, UNKNOWN_TYPE], scheme))


def spans_to_tags(n_chars: int, spans: Iterable[Span], scheme: str = "BMES") -> list[str]:
    """One tag for each of `n_chars` characters. Raises a DataError if a span is empty, exceeds [0, n_chars), or
    overlaps another, which tags cannot express."""
    _prefixes(scheme)
    tags = ["O"] * n_chars
    last: Span | None = None
    for span in sorted(spans):
        start, end, label = span.start, span.end, span.label
        if span.parts:
            shown = f"{label} at {show_places(span)}"
            raise DataError(f"{shown} is discontinuous, which tags cannot express; JSON lines (.jsonl) can hold it")
        if not 0 <= start < end <= n_chars:
            raise DataError(f"span {start}..{end} ({label}) does not fit a text of {counted(n_chars, 'character')}")
        if last is not None and start < last.end:
            shown = f"{last.label} at {show_places(last)} and {label} at {show_places(span)}"
            raise DataError(
                f"{shown} overlap: a character can have only one tag; JSON lines (.jsonl) can hold "
                "nested entities, `head: pair_grid` learns them, and nested=False predicts none"
            )
        if scheme == "BIO":
            tags[start:end] = [f"B-{label}"] + [f"I-{label}"] * (end - start - 1)
        elif end - start == 1:
            tags[start] = f"S-{label}"
        else:
            inside = f"M-{label}" if scheme == "BMES" else f"I-{label}"
            tags[start:end] = [f"B-{label}", *[inside] * (end - start - 2), f"E-{label}"]
        last = span
    return tags


def tags_to_spans(tags: Sequence[str], scheme: str = "BMES") -> list[Span]:
    """The complete entities, sorted; ill-formed tags are not entities (seqeval's strict mode)."""
    return [
        span
        for span, prefixes in _runs(tags, scheme)
        if prefixes == "S" or (prefixes[0] == "B" and (scheme == "BIO" or prefixes[-1] == "E"))
    ]


def _runs(tags: Sequence[str], scheme: str) -> Iterator[tuple[Span, str]]:
    """The stretches in which each tag continues the one before, with their prefixes; E and S end a stretch."""
    start, label, prefixes = 0, "", ""  # of the stretch so far
    for index, tag in enumerate(tags):
        prefix, here = split_tag(tag, scheme)
        if prefixes and not (here == label and prefix in "MIE"):
            yield Span(start, index, label), prefixes
            prefixes = ""
        if prefix != "O":
            if not prefixes:
                start, label = index, here
            prefixes += prefix
            if prefix in "ES":
                yield Span(start, index + 1, label), prefixes
                prefixes = ""
    if prefixes:
        yield Span(start, len(tags), label), prefixes


def lenient_spans(tags: Sequence[str], scheme: str = "BMES") -> list[Span]:
    """Entities as the published lattice models count them (Lattice LSTM, LR-CNN, LGN, SoftLexicon, DCSAN). B begins an
    entity, and ends the previous one if it has not ended; so does S, which is an entity itself. E ends an entity, which
    has the type of its B. M, I, O, and an E without a B are ignored. An entity that does not end has one character. For
    well-formed tags and for BIO, the result is the strict one. One difference is left: the B of a B B or B S is an
    entity of one character that their scorer never counts as correct, since it writes its offsets in another form than
    those of an S."""
    if scheme == "BIO":
        return tags_to_spans(tags, scheme)
    spans: list[Span] = []
    opened: tuple[int, str] | None = None
    for index, tag in enumerate(tags):
        prefix, label = split_tag(tag, scheme)
        if prefix in "BS" and opened is not None:
            spans.append(Span(opened[0], index, opened[1]))
            opened = None
        if prefix == "B":
            opened = (index, label)
        elif prefix == "S":
            spans.append(Span(index, index + 1, label))
        elif prefix == "E" and opened is not None:
            spans.append(Span(opened[0], index + 1, opened[1]))
            opened = None
    if opened is not None:
        spans.append(Span(opened[0], opened[0] + 1, opened[1]))
    return spans


def illegal_transitions(tags: Sequence[str], scheme: str = "BMES") -> list[IllegalTransition]:
    """Every violation of the scheme, including those at the start and the end of the text."""
    faults = []
    previous: str | None = None
    for index, tag in enumerate([*tags, None]):
        why = _why_illegal(previous, tag, scheme)
        if why:
            faults.append(IllegalTransition(index, previous, tag, why))
        previous = tag
    return faults


def repair(tags: Sequence[str], scheme: str = "BMES") -> list[str]:
    """Repair illegal tags; legal tags are returned unchanged.

    If M-X, I-X or E-X does not continue an entity of type X, it begins a new one. An entity that does not end is ended
    at its last character.
    """
    return spans_to_tags(len(tags), [span for span, _ in _runs(tags, scheme)], scheme)


def allowed_transitions(tags: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which tags may begin a text, follow one another, and end a text: bool[L], bool[L, L] (from, to), bool[L].

    The scheme is detected from the tags: if there is an M-, E- or S- tag, entities must be ended (BMES, BIOES).
    """
    parts = [split_tag(tag) for tag in tags]
    prefixes = np.array([prefix for prefix, _ in parts], dtype="U1")
    label_ids = {label: number for number, (_, label) in enumerate(parts)}
    labels = np.array([label_ids[label] for _, label in parts])
    continues = np.isin(prefixes, ["M", "I", "E"])
    opens = np.isin(prefixes, ["B", "M", "I"])
    same = labels[:, None] == labels[None, :]
    into = opens[:, None] & continues[None, :] & same
    has_closing = np.isin(prefixes, ["M", "E", "S"]).any()
    must_continue = opens & has_closing
    between = ~must_continue[:, None] & ~continues[None, :]
    return ~continues, into | between, ~must_continue


def _prefixes(scheme: str) -> str:
    if scheme not in _PREFIXES:
        raise DataError(f"unknown tag scheme {scheme!r}: expected one of {', '.join(SCHEMES)}")
    return _PREFIXES[scheme]


def _why_illegal(previous: str | None, tag: str | None, scheme: str) -> str:
    """The reason why `tag` must not follow `previous` (None is outside the text), or "" if it may."""
    before, before_label = ("O", "") if previous is None else split_tag(previous, scheme)
    here, label = ("O", "") if tag is None else split_tag(tag, scheme)
    inside = "M" if scheme == "BMES" else "I"
    is_open = before in "BMI"
    if here in "MIE" and not (is_open and before_label == label):
        return f"{tag} must follow B-{label} or {inside}-{label}"
    if scheme != "BIO" and is_open and here not in "MIE":
        return f"{previous} must be followed by {inside}-{before_label} or E-{before_label}"
    return ""
