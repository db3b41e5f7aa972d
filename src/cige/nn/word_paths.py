"""Entities from the relations of characters: every path of next characters between a first and a last one (W2NER §3.4).

The paper follows all paths from each first character, whose number may grow exponentially with the length of the text;
here only characters from which the last one can be reached are followed, and of one pair of first and last character,
at most `MAX_PATHS` paths are returned.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from cige.data.gold_spans import N_RELATIONS, NEXT

MAX_PATHS = 64


class Path(NamedTuple):
    """The `characters` of an entity, ascending, and the number of its `type`."""

    characters: tuple[int, ...]
    type: int

    @property
    def parts(self) -> tuple[tuple[int, int], ...]:
        """The stretches [start, end) of characters that follow one another."""
        cuts = [k for k in range(1, len(self.characters)) if self.characters[k] != self.characters[k - 1] + 1]
        bounds = zip([0, *cuts], [*cuts, len(self.characters)], strict=True)
        return tuple((self.characters[a], self.characters[b - 1] + 1) for a, b in bounds)


def find_paths(classes: np.ndarray) -> list[Path]:
    """The entities of a sentence, sorted; classes int64[T, 2 M - 1] have that of i and i + n - M + 1 at [i, n]."""
    reach = classes.shape[1] // 2
    after: dict[int, list[int]] = {}
    before: dict[int, list[int]] = {}
    for first, cell in np.argwhere(classes == NEXT).tolist():
        second = first + cell - reach
        if second > first:
            after.setdefault(first, []).append(second)
            before.setdefault(second, []).append(first)
    paths_found = []
    for last, cell in np.argwhere(classes >= N_RELATIONS).tolist():
        first = last + cell - reach
        if first <= last:
            paths = islice(_between(first, last, after, _reaching(last, first, before)), MAX_PATHS)
            paths_found += [Path(path, int(classes[last, cell]) - N_RELATIONS) for path in paths]
    return sorted(set(paths_found))


def _reaching(last: int, first: int, before: dict[int, list[int]]) -> set[int]:
    """The characters from `first` on from which there is a path to `last`."""
    reached, waiting = {last}, [last]
    while waiting:
        for earlier in before.get(waiting.pop(), ()):
            if earlier >= first and earlier not in reached:
                reached.add(earlier)
                waiting.append(earlier)
    return reached


def _between(first: int, last: int, after: dict[int, list[int]], reaching: set[int]) -> Iterator[tuple[int, ...]]:
    """All paths between the two; every character that is followed is one from which `last` can be reached."""
    waiting: list[tuple[int, ...]] = [(first,)] if first in reaching else []
    while waiting:
        path = waiting.pop()
        if path[-1] == last:
            yield path
            continue
        waiting += [(*path, later) for later in reversed(after.get(path[-1], ())) if later in reaching]
