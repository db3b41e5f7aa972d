"""Edges: remove whitespace and punctuation from the beginning and the end of entities, and complete what they cut."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence

from cige.lattice.lattice import Lattice
from cige.tagging.prediction_model import ScoredSpan
from cige.text.closed import Stretch, united, within

CLOSER_OF = dict(zip("《〈「『【〔〖〘〚“‘（([{⟨«‹＜［｛", "》〉」』】〕〗〙〛”’）)]}⟩»›＞］｝", strict=True))
_OPENER_OF = {closer: opener for opener, closer in CLOSER_OF.items()}
HALF_WIDTH = dict(zip("（）［］｛｝＜＞", "()[]{}<>", strict=True))  # (集团） is a pair too
EITHER = frozenset("\"'＂＇")  # quotation marks that open and close
KEPT_LAST = frozenset("%％‰")
ABBREVIATION = re.compile(
    r"(?:(?<![A-Za-z])[A-Za-z]|(?<![A-Z])(?:Inc|Ltd|Co|Corp|Bros|Jr|Sr|Dr|Mr|Mrs|St|No|Mt|vs|etc))[.．]$"
)
_MAY_BE_CUT = re.compile(f"[A-Za-z][A-Za-z]|[{re.escape(''.join(CLOSER_OF))}]")


def trimmed(text: str, start: int, end: int) -> tuple[int, int] | None:
    """[start, end) without the whitespace, punctuation and invisible characters at its edges, or None.

    Some characters are kept: a bracket or quotation mark if its counterpart is inside too (《红楼梦》,
    “三大问题”工作小组), a full stop that ends an abbreviation (Walt Disney Co.), a per cent sign, and asterisks that
    replace the last characters of a name.
    """
    if start < end and text[start].isalnum() and text[end - 1].isalnum():  # nearly always; no such character is a mark
        return start, end
    while start < end:
        if not _may_begin(text, start, end):
            start += 1
        elif not _may_end(text, start, end):
            end -= 1
        else:
            return start, end
    return None


def open_part(text: str, closed: Sequence[Stretch], start: int, end: int) -> tuple[int, int] | None:
    """The longest part of [start, end) outside all of the `closed` stretches (sorted, disjoint), trimmed; or None.

    If several parts have the same length, the first one is chosen.
    """
    inside = within(closed, start, end)
    begins = [start, *(start + b for _, b in inside)]
    ends = [*(start + a for a, _ in inside), end]
    parts = [trimmed(text, a, b) for a, b in zip(begins, ends, strict=True)]
    return max((part for part in parts if part), key=lambda part: part[1] - part[0], default=None)


def _may_begin(text: str, start: int, end: int) -> bool:
    char = text[start]
    if not is_outside_names(char):
        return True
    if char in CLOSER_OF:
        return _partner(text, range(start, end), char, CLOSER_OF[char])
    return char in EITHER and char in text[start + 1 : end]


def _may_end(text: str, start: int, end: int) -> bool:
    char = text[end - 1]
    if not is_outside_names(char) or char in KEPT_LAST:
        return True
    if char in _OPENER_OF:
        return _partner(text, range(end - 1, start - 1, -1), char, _OPENER_OF[char])
    if char in EITHER:
        return char in text[start : end - 1]
    if char == "*":  # 张**, but not **张三** of Markdown
        return start == 0 or text[start - 1] != "*"
    return char in ".．" and ABBREVIATION.search(text, max(start, end - 8), end) is not None


def _partner(text: str, places: range, own: str, other: str) -> bool:
    """Whether the counterpart of the mark at the first of `places` is at one of the other places, in either width."""
    depth, own, other = 0, HALF_WIDTH.get(own, own), HALF_WIDTH.get(other, other)
    for place in places:
        char = HALF_WIDTH.get(text[place], text[place])
        depth += (char == own) - (char == other)
        if depth == 0:
            return True
    return False


def is_outside_names(char: str) -> bool:
    """Whether names cannot begin or end with this character: punctuation, whitespace, invisible characters, and what
    stands for a character that could not be decoded."""
    category = unicodedata.category(char)
    return category[0] in "PZ" or category in ("Cc", "Cf", "Cs") or char == "\ufffd"


def splits_word(text: str, place: int) -> bool:
    """Whether an edge before text[place] splits a Latin word.

    A capital letter after a small one begins a word, as the P of iPhone and the A of OpenAI do. (The matching of words
    is stricter, see `cige.lexicon.matcher`: there, AI is no word of OpenAI.)
    """
    if not 0 < place < len(text):
        return False
    before, after = text[place - 1], text[place]
    return _is_latin(before) and _is_latin(after) and not (before.islower() and after.isupper())


def with_whole_edges(
    text: str,
    spans: Sequence[ScoredSpan],
    *,
    closed: Sequence[Stretch] = (),
    max_lengths: Mapping[str, int] | None = None,
) -> list[ScoredSpan]:
    """Spans that do not overlap, sorted, with their edges moved outwards as by `whole_edges`.

    Of spans that overlap then, those with the highest scores are kept. A span that would reach into a closed stretch,
    or become longer than its label allows, stays as it is.

    Args:
        closed: stretches of the text in which there are no entities.
        max_lengths: label -> the greatest length of its entities.
    """
    if not _MAY_BE_CUT.search(text):  # nothing can be cut; most texts
        return list(spans)
    longest = max_lengths or {}
    edges = [whole_edges(text, span.start, span.end, closed=closed, longest=longest.get(span.label)) for span in spans]
    if all(new == (span.start, span.end) for new, span in zip(edges, spans, strict=True)):
        return list(spans)
    moved = [span._replace(start=start, end=end) for span, (start, end) in zip(spans, edges, strict=True)]
    remaining: list[ScoredSpan] = []
    for span in sorted(moved, key=lambda span: -span.score):
        if all(span.end <= other.start or other.end <= span.start for other in remaining):
            remaining.append(span)
    return sorted(remaining, key=lambda span: (span.start, span.end, span.label))


def whole_edges(
    text: str, start: int, end: int, *, closed: Sequence[Stretch] = (), longest: int | None = None
) -> tuple[int, int]:
    """[start, end) with its edges moved outwards where they split a Latin word, or leave out the bracket or quotation
    mark whose counterpart is inside: 红杉坤德投资管理中心（有限合伙 gets its last bracket.

    Args:
        closed: stretches of the text in which there are no entities.
        longest: the greatest length, in characters; None is any.
    """
    first, last = start, end
    while splits_word(text, first):
        first -= 1
    while splits_word(text, last):
        last += 1
    while last < len(text) and (own := text[last]) in _OPENER_OF:
        if not _partner(text, range(last, first - 1, -1), own, _OPENER_OF[own]):
            break
        last += 1
    while first > 0 and (own := text[first - 1]) in CLOSER_OF:
        if not _partner(text, range(first - 1, last), own, CLOSER_OF[own]):
            break
        first -= 1
    if last - first > (longest or len(text)) or within(closed, first, start) or within(closed, end, last):
        return start, end
    return first, last


def not_entered(lattice: Lattice) -> Sequence[Stretch]:
    """The stretches that no entity reaches into when its edges are moved: what is closed, and the user's forced and
    blocked words."""
    rules = lattice.rules
    if not (rules.forced or rules.blocked):
        return lattice.closed
    forced = [(max(0, span.start), span.end) for span in rules.forced]
    return united([*lattice.closed, *forced, *rules.blocked])


def _is_latin(char: str) -> bool:
    return char.isascii() and char.isalpha()
