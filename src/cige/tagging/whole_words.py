"""Entities do not end within a Latin word: Microsoft Research A of Microsoft Research Asia is extended to its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cige.tagging.scored_span import ScoredSpan


def splits_word(text: str, place: int) -> bool:
    """Whether an edge before text[place] splits a Latin word; a capital letter after a small one begins a word, as the
    P of iPhone and the A of OpenAI do."""
    if not 0 < place < len(text):
        return False
    before, after = text[place - 1], text[place]
    return _is_latin(before) and _is_latin(after) and not (before.islower() and after.isupper())


def with_whole_words(text: str, spans: Sequence[ScoredSpan]) -> list[ScoredSpan]:
    """Spans that do not overlap, sorted, with their edges moved outwards where they split a Latin word.

    Of spans that overlap then, those with the highest scores are kept.
    """
    moved = [_moved(text, span) for span in spans]
    if all(new is old for new, old in zip(moved, spans, strict=True)):
        return list(spans)
    kept: list[ScoredSpan] = []
    for span in sorted(moved, key=lambda span: -span.score):
        if all(span.end <= other.start or other.end <= span.start for other in kept):
            kept.append(span)
    return sorted(kept, key=lambda span: (span.start, span.end, span.label))


def _moved(text: str, span: ScoredSpan) -> ScoredSpan:
    start, end = span.start, span.end
    while splits_word(text, start):
        start -= 1
    while splits_word(text, end):
        end += 1
    return span if (start, end) == (span.start, span.end) else replace(span, start=start, end=end)


def _is_latin(char: str) -> bool:
    return char.isascii() and char.isalpha()
