"""Rules: the forced and blocked user words in a text."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from cige.lexicon.latin_runs import without_cut_runs
from cige.lexicon.matcher import Matcher
from cige.lexicon.user_word import BLOCK, BLOCK_EXACT, EVIDENCE, FORCE, TYPE, UserWord

_NONE = np.empty((0, 3), dtype=np.int32)


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
            forced stretches, over which there can be no other entity anyway.
        typed: stretches that have the user's label wherever they are entities, sorted; within the window.
    """

    forced: tuple[ForcedSpan, ...] = ()
    blocked: tuple[tuple[int, int], ...] = ()
    typed: tuple[ForcedSpan, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.forced or self.blocked or self.typed)

    def within(self, start: int, end: int) -> Rules:
        """The rules for the window [start, end), with offsets from `start`: the forced stretches that overlap it, and
        the blocked stretches within it."""
        if not self:
            return self
        first = bisect_right(self.forced, start, key=lambda span: span.end)
        last = bisect_left(self.forced, end, key=lambda span: span.start)
        overlapping = self.forced[first:last] if start < end else ()  # nothing overlaps a window without characters
        forced = (ForcedSpan(s.start - start, s.end - start, s.label) for s in overlapping)
        first = bisect_left(self.blocked, (start, start))
        last = bisect_left(self.blocked, (end, end))
        blocked = tuple((a - start, b - start) for a, b in self.blocked[first:last] if b <= end)
        first = bisect_left(self.typed, start, key=lambda span: span.start)
        last = bisect_left(self.typed, end, key=lambda span: span.start)
        typed = (ForcedSpan(s.start - start, s.end - start, s.label) for s in self.typed[first:last] if s.end <= end)
        return Rules(tuple(forced), blocked, tuple(typed))


NO_RULES = Rules()


class RuleBook:
    """Finds the forced and blocked words of a user in texts.

    Args:
        words: the user's words; those with mode "evidence" are ignored.
    """

    def __init__(self, words: Iterable[UserWord]):
        self._words = [word for word in words if word.mode != EVIDENCE]
        long = [k for k, word in enumerate(self._words) if len(word.text) > 1]
        self._long_ids = np.array(long, np.int32)
        self._matcher = Matcher.build([self._words[k].text for k in long]) if long else None
        self._single_ids = {word.text: k for k, word in enumerate(self._words) if len(word.text) == 1}
        self._single = re.compile(f"[{re.escape(''.join(self._single_ids))}]") if self._single_ids else None

    def find(self, text: str) -> Rules:
        """The rules for `text` (normalised).

        If forced words overlap, the longest is chosen, or the first of the longest; then the longest of those that do
        not overlap it, and so on. No word begins or ends inside a run of Latin letters or of digits.
        """
        if not self._words:
            return NO_RULES
        rows = without_cut_runs(np.concatenate([self._find_long(text), self._find_single(text)]), text).tolist()
        if not rows:
            return NO_RULES
        forced = [row for row in rows if self._words[row[2]].mode == FORCE]
        taken, held = bytearray(len(text)), []
        for start, end, k in sorted(forced, key=lambda row: (row[0] - row[1], row[0])):
            if taken.find(1, start, end) < 0:
                taken[start:end] = b"\1" * (end - start)
                held.append((start, end, k))
        free = [row for row in rows if self._words[row[2]].mode != FORCE and taken.find(1, row[0], row[1]) < 0]
        blocked: set[tuple[int, int]] = set()
        for start, end, k in free:
            if self._words[k].mode == BLOCK:
                blocked.update((a, b) for a in range(start, end) for b in range(a + 1, end + 1))
            elif self._words[k].mode == BLOCK_EXACT:
                blocked.add((start, end))
        typed = (row for row in free if self._words[row[2]].mode == TYPE)
        return Rules(forced=self._spans(held), blocked=tuple(sorted(blocked)), typed=self._spans(typed))

    def _spans(self, rows: Iterable[tuple[int, int, int]]) -> tuple[ForcedSpan, ...]:
        return tuple(ForcedSpan(start, end, str(self._words[k].label)) for start, end, k in sorted(rows))

    def _find_long(self, text: str) -> np.ndarray:
        if self._matcher is None:
            return _NONE
        rows = self._matcher.find(text)
        rows[:, 2] = self._long_ids[rows[:, 2]]
        return rows

    def _find_single(self, text: str) -> np.ndarray:
        if self._single is None:
            return _NONE
        found = [(m.start(), m.end(), self._single_ids[m.group()]) for m in self._single.finditer(text)]
        return np.array(found, np.int32).reshape(-1, 3)
