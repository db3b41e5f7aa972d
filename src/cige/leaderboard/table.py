"""The rows of a leaderboard, made from results alone."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cige.errors import CigeError
from cige.leaderboard.papers import DATA_SETS, Paper, papers
from cige.leaderboard.results import CellResult
from cige.reports.significance import Difference, all_differences

NO_WORDS, NAMES = "none", "names of the file"  # lists of `cige.tagging.evaluation.user_word_trials`


@dataclass(frozen=True)
class BoardRow:
    """A system on a data set.

    Attributes:
        paper: what its paper says; None for a system without one, such as a twin without words.
        results: those of its seeds, in order.
        behind: F1 of the best system minus that of this one, with interval and p value; None for the best.
        over_twin: F1 minus that of the same network without words; None if the twin has no result.
    """

    name: str
    paper: Paper | None
    results: Sequence[CellResult]
    behind: Difference | None
    over_twin: Difference | None

    @property
    def test(self) -> list[float]:
        """F1 on test by seed, 0..1; empty if the data set has no test file."""
        return [result.test_f1 for result in self.results if result.test_f1 is not None]

    @property
    def deciding(self) -> list[float]:
        """The F1 that ranks systems, by seed, 0..1."""
        return [result.f1 for result in self.results]

    @property
    def speed(self) -> dict[int, float]:
        """Sentences per processor second by batch size, means over seeds."""
        sizes = self.results[0].sentences_per_second
        return {int(size): statistics.mean(r.sentences_per_second[size] for r in self.results) for size in sizes}

    @property
    def word_gain(self) -> float | None:
        """F1 on dev with the names of the sentences as user words minus F1 without, mean over seeds."""
        trials = [r.user_words for r in self.results if {NAMES, NO_WORDS} <= r.user_words.keys()]
        gains = [trial[NAMES] - trial[NO_WORDS] for trial in trials]
        return statistics.mean(gains) if gains else None


def board_of(results: Sequence[CellResult]) -> dict[str, list[BoardRow]]:
    """The rows of each data set that has results: those of the papers first, in their order; raises as `rows_of`."""
    there = sorted({result.data for result in results})
    ordered = [data for data in DATA_SETS if data in there] + [data for data in there if data not in DATA_SETS]
    return {data: rows_of(results, data) for data in ordered}


def rows_of(results: Sequence[CellResult], data: str) -> list[BoardRow]:
    """The systems on a data set, the best first.

    Differences, intervals and p values are those of `all_differences` over all systems of the table.

    Raises:
        CigeError: the results of one system have different settings, or the results of the data set were made from
            different files or sentences.
    """
    systems: dict[str, list[CellResult]] = {}
    for result in sorted((r for r in results if r.data == data), key=lambda r: (r.system, r.seed)):
        systems.setdefault(result.system, []).append(result)
    for system, of_system in systems.items():
        if len({result.settings for result in of_system}) > 1:
            seeds = ", ".join(f"{r.seed}: {r.settings[:8]}" for r in of_system)
            raise CigeError(f"{data}/{system}: seeds with different settings ({seeds}); delete the older ones")
    _check_files([result for of_system in systems.values() for result in of_system])
    ranked = sorted(systems, key=lambda system: statistics.mean(r.f1 for r in systems[system]), reverse=True)
    try:
        pairs = all_differences([np.array([r.counts for r in systems[system]], np.int64) for system in ranked])
    except ValueError as reason:
        raise CigeError(f"{data}: results of different sentences ({reason}); see data_sha256 in them") from reason
    known = papers()
    rows = []
    for place, system in enumerate(ranked):
        twin = known[system].twin if system in known else None
        rows.append(
            BoardRow(
                name=system,
                paper=known.get(system),
                results=systems[system],
                behind=pairs.get((0, place)),
                over_twin=_difference(pairs, place, ranked.index(twin)) if twin in ranked else None,
            )
        )
    return rows


def _check_files(results: Sequence[CellResult]) -> None:
    """Raise CigeError if two results read different files of one name, such as other word vectors."""
    first: dict[str, CellResult] = {}
    for result in results:
        for name, digest in result.data_sha256.items():
            other = first.setdefault(name, result)
            if other.data_sha256[name] != digest:
                raise CigeError(
                    f"{result.path} was made with another file {name!r} (SHA-256 {digest[:8]}) than {other.path} "
                    f"({other.data_sha256[name][:8]}); a table compares systems that read the same data and vectors, "
                    "so keep one of the two in another folder of results"
                )


def _difference(pairs: Mapping[tuple[int, int], Difference], first: int, second: int) -> Difference:
    """The F1 of the first minus that of the second, whichever is ranked higher."""
    if first < second:
        return pairs[first, second]
    other = pairs[second, first]
    return Difference(-other.value, -other.high, -other.low, other.p_value, other.covers_seeds)
