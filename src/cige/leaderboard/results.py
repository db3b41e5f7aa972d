"""The results of a leaderboard: one JSON file per cell, so that the folders of several machines can be merged."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np

from cige.entities.scores import Counts
from cige.errors import CigeError
from cige.folders.atomic import atomic_file, write_atomically
from cige.folders.checked_settings import fits
from cige.json_text import to_json
from cige.reports.comparison import SPEED_BATCHES

FORMAT = 1
_MOST = 1_000_000  # entities of a sentence


@dataclass(frozen=True)
class CellResult:
    """One system on one data set with one seed.

    Attributes:
        data, system, seed: the cell; system is the name of its recipe without the data set.
        architecture: name of the model.
        settings: SHA-256 of the recipe with all its settings.
        dev_f1, test_f1: strict F1, 0..1; `test_f1` is None if the data set has no test file.
        counts: for each sentence of the deciding split (test if there is one, else dev) the numbers of entities that
            are gold, predicted, and both (`cige.reports.significance.sentence_counts`).
        repeated: the sentences of the deciding split, from 0 and in order, whose text is that of a training sentence.
        user_words: F1 on dev by list of user words, "none" among them.
        sentences_per_second: maps batch sizes to sentences per processor second, text to entities, one thread.
        megabytes: most resident memory of a process that loads the model and reads the deciding split in batches.
        n_parameters: trained weights; best_epoch: epoch of the weights; seconds: time of training.
        work: bytes of training text times epochs, from which the time of other cells is estimated.
        weights_sha256: of the model's weights; data_sha256: maps each file of data and vectors to its checksum.
        versions: of cige, torch and numpy; machine: where it was trained.
    """

    data: str
    system: str
    seed: int
    architecture: str
    settings: str
    dev_f1: float
    test_f1: float | None
    counts: list[list[int]]
    repeated: list[int]
    user_words: dict[str, float]
    sentences_per_second: dict[str, float]
    megabytes: float
    n_parameters: int
    best_epoch: int
    seconds: float
    work: int
    weights_sha256: str
    data_sha256: dict[str, str]
    versions: dict[str, str]
    machine: dict[str, object]

    @property
    def f1(self) -> float:
        """The F1 that ranks systems: test if there is a test set, else dev."""
        return self.dev_f1 if self.test_f1 is None else self.test_f1

    @property
    def new_f1(self) -> float:
        """F1 on the sentences of the deciding split that are not in the training data; 0 if none has an entity."""
        new = np.delete(np.array(self.counts, np.int64).reshape(-1, 3), self.repeated, axis=0)  # [N, 3]
        return Counts(*new.sum(0).tolist()).f1

    @property
    def path(self) -> str:
        """The file of this result within a folder of results."""
        return result_path(self.data, self.system, self.seed)


def result_path(data: str, system: str, seed: int) -> str:
    """The file of a cell within a folder of results."""
    return f"{data}/{system}-{seed}.json"


def is_cell_name(data: str, system: str) -> bool:
    """Whether results of this system on this data set have a place in a folder of results."""
    return all(re.fullmatch(r"\w[\w.-]*", name) for name in (data, system))


def read_results(folder: Path, *, on_problem: Callable[[CigeError], None] | None = None) -> list[CellResult]:
    """All results of a folder, by data set, system and seed; an empty list if there is no folder.

    A file that is not a result, or lies where that of another cell belongs, is a CigeError, which is raised. If
    `on_problem` is given, it is called with the error instead, and the file is skipped.
    """
    results = []
    for path in sorted(path for path in folder.glob("*/*.json") if not path.name.startswith(".")):
        try:
            results.append(result_at(path, folder))
        except CigeError as problem:
            if on_problem is None:
                raise
            on_problem(problem)
    return sorted(results, key=lambda result: (result.data, result.system, result.seed))


def result_at(path: Path, folder: Path) -> CellResult:
    """The result in a file of a folder of results; a CigeError if it is none, or that of another cell."""
    result = read_result_file(path)
    if path != folder / result.path:
        cell = result.path.removesuffix(".json")
        raise CigeError(
            f"{path}: the result of another cell, {cell}; expected at {folder / result.path}: move it there, or delete "
            "it if that cell has a result"
        )
    return result


def _advice(path: Path) -> str:
    """What to do about a file that is no result."""
    named = re.fullmatch(r"(.+)-[0-9]+\.json", path.name)
    if named is None or not is_cell_name(path.parent.name, named[1]):
        return "no cell has a file of this name: move it out of the results, or delete it"
    return (
        f"if {path.parent.name}/{path.stem} is a cell, `cige leaderboard run` on this folder makes the result again, "
        "and keeps this file with .old behind its name"
    )


def read_result_file(path: Path) -> CellResult:
    """One result. Raises CigeError if the file is not the result of a cell."""
    try:
        return _result_of(json.loads(path.read_text(encoding="utf-8")))
    except CigeError as reason:
        problem = str(reason)
    except OSError as reason:
        problem = f"cannot be read ({reason.strerror})"
    except (ValueError, RecursionError) as reason:
        problem = f"not JSON ({reason})"
    raise CigeError(f"{path}: {problem}; {_advice(path)}")


def _result_of(values: Any) -> CellResult:
    """The result with these JSON values. Raises a CigeError that says what is wrong with them."""
    if not isinstance(values, dict) or values.pop("format", None) != FORMAT:
        raise CigeError(f"not a result of format {FORMAT} of `cige leaderboard run`")
    hints = get_type_hints(CellResult)
    if values.keys() != hints.keys():
        differing = ", ".join(sorted(values.keys() ^ hints.keys()))
        raise CigeError(f"not a result of this version, which differs in {differing}")
    for name, expected in hints.items():
        if not fits(values[name], expected):
            shown = expected.__name__ if type(expected) is type else expected
            raise CigeError(f"{name} is {to_json(values[name], ensure_ascii=True)[:80]}, expected {shown}")
    result = CellResult(**values)
    if problem := next(_problems(result), None):
        raise CigeError(problem)
    return result


def _problems(result: CellResult) -> Iterator[str]:
    """What cannot be true of a result that `cige leaderboard run` wrote."""
    if not result.counts:
        yield "counts is empty, expected the numbers of entities of each sentence"
    elif any(len(row) != 3 or min(row) < 0 or row[2] > min(row[:2]) or max(row) > _MOST for row in result.counts):
        yield "counts is not the numbers of gold, predicted and correct entities of each sentence"
    else:
        n_gold, n_predicted, n_correct = map(sum, zip(*result.counts, strict=True))
        f1 = Counts(n_gold, n_predicted, n_correct).f1
        if not math.isclose(f1, result.f1, abs_tol=1e-9):
            name = "dev_f1" if result.test_f1 is None else "test_f1"
            yield f"{name} is {result.f1:.4f}, but its counts give {f1:.4f}"
    places = result.repeated
    if places != sorted(set(places)) or any(not 0 <= place < len(result.counts) for place in places):
        yield f"repeated is not a list of sentences in order, below {len(result.counts)}"
    if not 0 <= result.dev_f1 <= 1:
        yield f"dev_f1 is {result.dev_f1}, expected a share from 0 to 1"
    for name, f1 in result.user_words.items():
        if not 0 <= f1 <= 1:
            yield f"user_words has {f1} for {name!r}, expected a share from 0 to 1"
    speeds = result.sentences_per_second
    if speeds.keys() != set(map(str, SPEED_BATCHES)):
        expected = " and ".join(map(str, SPEED_BATCHES))
        yield f"sentences_per_second is of the batch sizes {', '.join(speeds) or 'none'}, expected {expected}"
    amounts = {name: getattr(result, name) for name in ("work", "seconds", "megabytes", "n_parameters")}
    amounts["sentences_per_second"] = min(speeds.values(), default=0)
    yield from (f"{name} is {value}, expected more than 0" for name, value in amounts.items() if value <= 0)
    if not is_cell_name(result.data, result.system):
        yield f"{result.data}/{result.system} cannot be the name of a cell"


def write_result_file(folder: Path, result: CellResult) -> Path:
    """Write a result into a folder of results, atomically; returns its path.

    A file there that is not a result of this cell, such as one of a newer version, is kept with .old behind its name,
    or .old.2 and so on if there is one.
    """
    path = folder / result.path
    _keep_other(path, folder)
    write_atomically(path, to_json({"format": FORMAT, **asdict(result)}) + "\n")
    return path


def _keep_other(path: Path, folder: Path) -> None:
    """Rename what lies at the place of a result and is not it: a file, a folder or a link that leads nowhere."""
    if os.path.lexists(path):
        try:
            result_at(path, folder)
        except CigeError:
            names = (f"{path.name}.old" + (f".{number}" if number > 1 else "") for number in count(1))
            path.rename(next(kept for kept in map(path.with_name, names) if not os.path.lexists(kept)))


def merge(sources: list[Path], into: Path, *, on_problem: Callable[[CigeError], None] | None = None) -> list[Path]:
    """Copy the results of other folders into one; returns the files that are new.

    A file that is no result is an error, or skipped, as in `read_results`; one that is skipped where a new result
    belongs is kept as in `write_result_file`. Raises a CigeError if a folder has no result, or two have different F1
    for one cell. Nothing is copied then.
    """
    have = {into / result.path: result for result in read_results(into, on_problem=on_problem)}
    new: dict[Path, Path] = {}
    for source in sources:
        results = read_results(source, on_problem=on_problem)
        if not results:
            raise CigeError(f"{source}: no result of `cige leaderboard run`")
        for result in results:
            target = into / result.path
            there = new.get(target, target)
            if target not in have:
                new[target], have[target] = source / result.path, result
            elif (other := have[target]).counts != result.counts or other.dev_f1 != result.dev_f1:
                raise CigeError(
                    f"{source / result.path}: F1 {100 * result.f1:.2f}, but {there} has {100 * other.f1:.2f} for the "
                    "same cell; delete the one that is wrong (`cige leaderboard check` runs a cell again)"
                )
    for target, origin in new.items():
        _keep_other(target, into)
        with atomic_file(target) as aside:
            shutil.copyfile(origin, aside)
    return list(new)
