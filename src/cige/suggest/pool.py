"""Pool: the best candidates of a stream of texts, in bounded memory and independent of their order."""

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
        key: the key of the text (`texts.text_key`).
        line: its line in the file, from 1.
        doubts: the doubts of a model; empty if no model is used.
    """

    text: str
    key: int
    line: int
    doubts: tuple[Doubt, ...] = ()

    def to_list(self) -> list[Any]:
        """The fields as JSON values."""
        return [self.text, self.key, self.line, [[d.start, d.end, d.amount] for d in self.doubts]]

    @classmethod
    def from_list(cls, values: list[Any]) -> Candidate:
        text, key, line, doubts = values
        return cls(text, key, line, tuple(Doubt(*doubt) for doubt in doubts))


class Pool:
    """The `size` candidates with the highest values, without duplicate texts.

    Args:
        size: maximum number of candidates, at least 1.
        entries: (worth, tie, candidate) of a saved pool, see `entries`.
    """

    def __init__(self, size: int, entries: Iterable[tuple[float, int, Candidate]] = ()):
        self._size = size
        self._heap: list[tuple[float, int, int]] = []  # (worth, tie, key), the lowest first
        self._kept: dict[int, Candidate] = {}
        for worth, tie, candidate in entries:
            self.offer(worth, tie, candidate)

    def __len__(self) -> int:
        return len(self._kept)

    def offer(self, worth: float, tie: int, candidate: Candidate) -> None:
        """Add a candidate if it is among the best so far; of equal texts, the first one is kept.

        Args:
            tie: orders candidates with equal `worth`; different texts must have different values.
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
        return [candidate for _, _, candidate in self.entries()]
