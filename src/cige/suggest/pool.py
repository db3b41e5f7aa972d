"""Pool: the best few of any number of texts, in bounded memory, whatever the order in which they come."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cige.suggest.doubts import Doubt


@dataclass(frozen=True)
class Candidate:
    """A text that may be suggested.

    Attributes:
        key: of the text (`texts.text_key`).
        line: where it stands in its file, from 1.
        doubts: of a model; empty where none was asked.
    """

    text: str
    key: int
    line: int
    doubts: tuple[Doubt, ...] = ()

    def to_list(self) -> list[Any]:
        """As JSON holds it."""
        return [self.text, self.key, self.line, [[d.start, d.end, d.amount] for d in self.doubts]]

    @classmethod
    def from_list(cls, values: list[Any]) -> Candidate:
        """What `to_list` gave."""
        text, key, line, doubts = values
        return cls(text, key, line, tuple(Doubt(*doubt) for doubt in doubts))


class Pool:
    """The `size` candidates of the highest worth, one for each text.

    Args:
        size: at least 1.
        entries: (worth, tie, candidate) of a pool that was kept, see `entries`.
    """

    def __init__(self, size: int, entries: Iterable[tuple[float, int, Candidate]] = ()):
        self._size = size
        self._heap: list[tuple[float, int, int]] = []  # worth, tie, key; the lowest first
        self._kept: dict[int, Candidate] = {}
        for worth, tie, candidate in entries:
            self.offer(worth, tie, candidate)

    def __len__(self) -> int:
        return len(self._kept)

    def offer(self, worth: float, tie: int, candidate: Candidate) -> None:
        """Take a candidate in if it is among the best so far; of equal texts the first stays.

        Args:
            tie: decides between equal worths; different for different texts.
        """
        if candidate.key in self._kept:
            return
        entry = (worth, tie, candidate.key)
        if len(self._heap) < self._size:
            heapq.heappush(self._heap, entry)
        elif entry > self._heap[0]:
            del self._kept[heapq.heapreplace(self._heap, entry)[2]]
        else:
            return
        self._kept[candidate.key] = candidate

    def entries(self) -> list[tuple[float, int, Candidate]]:
        """(worth, tie, candidate), the best first."""
        return [(worth, tie, self._kept[key]) for worth, tie, key in sorted(self._heap, reverse=True)]

    def best(self) -> list[Candidate]:
        """The candidates, the best first."""
        return [candidate for _, _, candidate in self.entries()]
