"""Rules: the forced and blocked user words in a text."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from cige.lexicon.user_word import BLOCK, BLOCK_EXACT, FORCE, TYPE, Mode


@dataclass(frozen=True, slots=True)
class ForcedSpan:
    """A stretch [start, end) that is an entity of type `label`, regardless of the model."""

    start: int
    end: int
    label: str


@dataclass(frozen=True)
class Rules:
    """The forced and blocked stretches of a text, or of a window of it.

    Attributes:
        forced: sorted, disjoint stretches. They may extend beyond either end of the window.
        blocked: stretches [start, end) that are not entities, sorted. They lie within the window and do not overlap
            forced stretches, over which there can be no other entity anyway. What may reach beyond them is said in
            `cige.tagging.blocking`.
        typed: stretches that have the user's label wherever they are entities, sorted; within the window.
        blocked_around, typed_around: such stretches that contain a forced one, where only nested entities could be.
    """

    forced: tuple[ForcedSpan, ...] = ()
    blocked: tuple[tuple[int, int], ...] = ()
    typed: tuple[ForcedSpan, ...] = ()
    blocked_around: tuple[tuple[int, int], ...] = ()
    typed_around: tuple[ForcedSpan, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.forced or self.blocked or self.typed)

    def within(self, start: int, end: int) -> Rules:
        """The rules for the window [start, end), with offsets from `start`: the forced stretches that overlap it, and
        the blocked stretches within it."""
        if not self:
            return self
        forced = self.forced
        if forced:
            first = bisect_right(forced, start, key=lambda span: span.end)
            last = bisect_left(forced, end, key=lambda span: span.start)
            overlapping = forced[first:last] if start < end else ()  # nothing overlaps a window without characters
            forced = tuple([ForcedSpan(s.start - start, s.end - start, s.label) for s in overlapping])
        blocked, around = (_pairs_within(spans, start, end) for spans in (self.blocked, self.blocked_around))
        typed, typed_around = (_typed_within(spans, start, end) for spans in (self.typed, self.typed_around))
        return Rules(forced, blocked, typed, around, typed_around)


NO_RULES = Rules()


def _pairs_within(spans: tuple[tuple[int, int], ...], start: int, end: int) -> tuple[tuple[int, int], ...]:
    inside = spans[bisect_left(spans, (start, start)) : bisect_left(spans, (end, end))] if spans else ()
    return tuple([(a - start, b - start) for a, b in inside if b <= end])


def _typed_within(spans: tuple[ForcedSpan, ...], start: int, end: int) -> tuple[ForcedSpan, ...]:
    if not spans:
        return spans
    first = bisect_left(spans, start, key=lambda span: span.start)
    last = bisect_left(spans, end, key=lambda span: span.start)
    return tuple([ForcedSpan(s.start - start, s.end - start, s.label) for s in spans[first:last] if s.end <= end])


def find_rules(rows: np.ndarray, modes: Sequence[Mode], labels: Sequence[str | None]) -> Rules:
    """The rules for a text, of rows int32[n, 3] (start, end, k) of words in it that are not evidence, which have mode
    and label k.

    If forced words overlap, the longest is chosen, or the first of the longest; then the longest of those that do not
    overlap it, and so on. Blocked and typed words hold wherever nothing is forced.
    """
    if not len(rows):
        return NO_RULES
    rows_found: list[tuple[int, int, int]] = rows.tolist()
    taken, held = bytearray(), []
    forced = [row for row in rows_found if modes[row[2]] == FORCE]
    if forced:
        taken = bytearray(int(rows[:, 1].max()))
        for start, end, k in sorted(forced, key=lambda row: (row[0] - row[1], row[0])):
            if taken.find(1, start, end) < 0:
                taken[start:end] = b"\1" * (end - start)
                held.append((start, end, k))
    blocked: set[tuple[int, int]] = set()
    typed: list[tuple[int, int, int]] = []
    for start, end, k in rows_found:
        if modes[k] == BLOCK:
            blocked.update([(a, b) for a in range(start, end) for b in range(a + 1, end + 1)])
        elif modes[k] == BLOCK_EXACT:
            blocked.add((start, end))
        elif modes[k] == TYPE:
            typed.append((start, end, k))
    spans, of_types, forced_spans = sorted(blocked), _spans(typed, labels), _spans(held, labels)
    if not held:
        return Rules((), tuple(spans), of_types)
    return Rules(
        forced_spans,
        tuple([span for span in spans if taken.find(1, *span) < 0]),
        tuple([span for span in of_types if taken.find(1, span.start, span.end) < 0]),
        tuple([span for span in spans if _contains_one(*span, forced_spans)]),
        tuple([span for span in of_types if _contains_one(span.start, span.end, forced_spans)]),
    )


def _contains_one(start: int, end: int, forced: Sequence[ForcedSpan]) -> bool:
    """Whether [start, end) contains one of the stretches (sorted, disjoint), and more."""
    k = bisect_left(forced, start, key=lambda span: span.start)
    return k < len(forced) and forced[k].end <= end and (forced[k].start, forced[k].end) != (start, end)


def _spans(rows: Iterable[tuple[int, int, int]], labels: Sequence[str | None]) -> tuple[ForcedSpan, ...]:
    return tuple([ForcedSpan(start, end, str(labels[k])) for start, end, k in sorted(rows)])
