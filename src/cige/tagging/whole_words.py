"""Entities do not end within a Latin word: Microsoft Research A of Microsoft Research Asia is extended to its end."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from cige.tagging.scored_span import ScoredSpan
from cige.text.closed import Stretch, within

_LATIN = re.compile("[A-Za-z][A-Za-z]")


def splits_word(text: str, place: int) -> bool:
    """Whether an edge before text[place] splits a Latin word.

    A capital letter after a small one begins a word, as the P of iPhone and the A of OpenAI do. (The matching of words
    is stricter, see `cige.lexicon.matcher`: there, AI is no word of OpenAI.)
    """
    if not 0 < place < len(text):
        return False
    before, after = text[place - 1], text[place]
    return _is_latin(before) and _is_latin(after) and not (before.islower() and after.isupper())


def with_whole_words(
    text: str,
    spans: Sequence[ScoredSpan],
    *,
    closed: Sequence[Stretch] = (),
    max_lengths: Mapping[str, int] | None = None,
) -> list[ScoredSpan]:
    """Spans that do not overlap, sorted, with their edges moved outwards where they split a Latin word.

    Of spans that overlap then, those with the highest scores are kept. A span that would reach into a closed stretch,
    or become longer than its label allows, stays as it is.

    Args:
        closed: stretches of the text in which there are no entities.
        max_lengths: label -> the greatest length of its entities.
    """
    if not _LATIN.search(text):  # nothing can be split; most texts
        return list(spans)
    moved = [_moved(text, span, closed, (max_lengths or {}).get(span.label, len(text))) for span in spans]
    if all(new is old for new, old in zip(moved, spans, strict=True)):
        return list(spans)
    remaining: list[ScoredSpan] = []
    for span in sorted(moved, key=lambda span: -span.score):
        if all(span.end <= other.start or other.end <= span.start for other in remaining):
            remaining.append(span)
    return sorted(remaining, key=lambda span: (span.start, span.end, span.label))


def _moved(text: str, span: ScoredSpan, closed: Sequence[Stretch], longest: int) -> ScoredSpan:
    start, end = span.start, span.end
    while splits_word(text, start):
        start -= 1
    while splits_word(text, end):
        end += 1
    is_same = (start, end) == (span.start, span.end)
    if is_same or end - start > longest or within(closed, start, end):
        return span
    return span._replace(start=start, end=end)


def _is_latin(char: str) -> bool:
    return char.isascii() and char.isalpha()
