"""The results of a leaderboard: one JSON file per cell, so that the folders of several machines can be merged."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import get_type_hints

import numpy as np

from cige.errors import CigeError
from cige.folders.atomic import atomic_file
from cige.folders.checked_settings import fits
from cige.json_text import to_json

FORMAT = 1
AGAIN = "move it away or delete it, and `cige leaderboard run` makes the result again"


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
        new = np.delete(np.array(self.counts, np.int64), self.repeated, axis=0)  # [N, 3]
        n_gold, n_predicted, n_correct = new.sum(0).tolist()
        return 2 * n_correct / (n_gold + n_predicted) if n_gold + n_predicted else 0.0

    @property
    def path(self) -> str:
        """The file of this result within a folder of results."""
        return result_path(self.data, self.system, self.seed)


def result_path(data: str, system: str, seed: int) -> str:
    """The file of a cell within a folder of results."""
    return f"{data}/{system}-{seed}.json"


def read_results(folder: Path) -> list[CellResult]:
    """All results of a folder, by data set, system and seed; an empty list if there is no folder.

    Raises:
        CigeError: a file is not a result, or lies where that of another cell belongs.
    """
    results = []
    for path in sorted(folder.glob("*/*.json")):
        result = read_result_file(path)
        if path != folder / result.path:
            raise CigeError(f"{path}: the result of another cell; expected at {folder / result.path}")
        results.append(result)
    return sorted(results, key=lambda result: (result.data, result.system, result.seed))


def read_result_file(path: Path) -> CellResult:
    """One result. Raises CigeError if the file is not the result of a cell."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as reason:
        raise CigeError(f"{path}: not JSON ({reason}); {AGAIN}") from reason
    if not isinstance(values, dict) or values.pop("format", None) != FORMAT:
        raise CigeError(f"{path}: not a result of format {FORMAT} of `cige leaderboard run`; {AGAIN}")
    names = {field.name for field in fields(CellResult)}
    if values.keys() != names:
        differing = ", ".join(sorted(values.keys() ^ names))
        raise CigeError(f"{path}: not a result of this version, which differs in {differing}; {AGAIN}")
    result = CellResult(**values)
    for name, expected in get_type_hints(CellResult).items():
        if not fits(values[name], expected):
            raise CigeError(f"{path}: {name} is {to_json(values[name])[:80]}, expected {_shown(expected)}; {AGAIN}")
    if any(len(row) != 3 or min(row) < 0 for row in result.counts):
        raise CigeError(f"{path}: counts is not three numbers, 0 or more, for each sentence; {AGAIN}")
    places = result.repeated
    if places != sorted(set(places)) or any(not 0 <= place < len(result.counts) for place in places):
        raise CigeError(f"{path}: repeated is not a list of sentences in order, below {len(result.counts)}; {AGAIN}")
    if not (re.fullmatch(r"\w+", result.data) and re.fullmatch(r"[\w.-]+", result.system)):
        raise CigeError(f"{path}: {result.data}/{result.system} cannot be the name of a cell")
    return result


def write_result_file(folder: Path, result: CellResult) -> Path:
    """Write a result into a folder of results, atomically; returns its path."""
    path = folder / result.path
    with atomic_file(path) as aside:
        aside.write_text(to_json({"format": FORMAT, **asdict(result)}) + "\n", encoding="utf-8")
    return path


def merge(sources: list[Path], into: Path) -> list[Path]:
    """Copy the results of other folders into one; returns the files that are new.

    Raises:
        CigeError: a folder has no result, or two folders have different F1 for one cell. Nothing is copied then.
    """
    new: dict[Path, Path] = {}
    for source in sources:
        results = read_results(source)
        if not results:
            raise CigeError(f"{source}: no result of `cige leaderboard run`")
        for result in results:
            target = into / result.path
            there = new.get(target, target)
            if not there.is_file():
                new[target] = source / result.path
            elif (other := read_result_file(there)).counts != result.counts or other.dev_f1 != result.dev_f1:
                raise CigeError(
                    f"{source / result.path}: F1 {100 * result.f1:.2f}, but {there} has {100 * other.f1:.2f} for the "
                    "same cell; delete the one that is wrong (`cige leaderboard check` runs a cell again)"
                )
    for target, origin in new.items():
        with atomic_file(target) as aside:
            shutil.copyfile(origin, aside)
    return list(new)


def _shown(expected: object) -> str:
    return getattr(expected, "__name__", str(expected)) if isinstance(expected, type) else str(expected)
