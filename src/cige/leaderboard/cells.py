"""The cells of a leaderboard, one per recipe and seed, in the order in which they are run: cheapest first."""

from __future__ import annotations

import hashlib
import math
import statistics
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from cige.data.registry import DATASETS, dataset_file
from cige.errors import CigeError, DataError
from cige.json_text import to_json
from cige.leaderboard.results import CellResult, is_cell_name, result_path
from cige.training.files import find_file
from cige.training.recipe import Recipe
from cige.training.sources import check_one_corpus


@dataclass(frozen=True)
class Cell:
    """A recipe and a seed."""

    recipe: Recipe
    seed: int

    @property
    def data(self) -> str:
        """The name of the data set, or of the folder of the development file."""
        data = self.recipe.data
        return data.dataset or Path(str(data.dev or data.train)).parent.name or "data"

    @property
    def system(self) -> str:
        """The name of the recipe without the data set, as `cige recipes list` has it."""
        return self.recipe.name.removeprefix(f"{self.data}-").replace("-", "_")

    @property
    def name(self) -> str:
        """Data set, system and seed, such as weibo/flat-1."""
        return self.path.removesuffix(".json")

    @property
    def path(self) -> str:
        """The file of its result within a folder of results."""
        return result_path(self.data, self.system, self.seed)

    @property
    def settings(self) -> str:
        """SHA-256 of the recipe with all its settings.

        Inputs that results of earlier versions did not have count only where a recipe uses them.
        """
        settings = asdict(self.recipe)
        if settings["model"]["components"] is None:
            del settings["model"]["components"]
        return hashlib.sha256(to_json(settings, sort_keys=True).encode()).hexdigest()

    def work(self, data_dir: str | None) -> int:
        """Bytes of training text times epochs: the part of the cost that does not depend on the system."""
        train = self.data_files(data_dir)["train"]
        return train.stat().st_size * self.recipe.training.n_epochs

    def data_files(self, data_dir: str | None) -> dict[str, Path]:
        """The files that the run reads: those of the data set by split, vectors by what they are of, and components.

        A run that starts from a model has the vectors of that model.
        """
        data, vectors = self.recipe.data, self.recipe.vectors
        if data.dataset is not None:
            splits = {}
            for name in DATASETS[data.dataset].origins:
                with suppress(DataError) if name == "test" else nullcontext():  # then dev decides
                    splits[name] = dataset_file(data.dataset, name, data_dir=data_dir)
        else:
            named = {"train": data.train, "dev": data.dev, "test": data.test}
            splits = {name: find_file(path, data_dir) for name, path in named.items() if path is not None}
        components = self.recipe.model.components
        tables = {"char": vectors.char, "bigram": vectors.bigram, "word": vectors.word}
        tables = tables if self.recipe.start_from is None else {}
        tables |= {} if components is None else {"components": components.table}
        return splits | {name: find_file(path, data_dir) for name, path in tables.items() if path is not None}


def check_name(cell: Cell) -> None:
    """Raise CigeError if the result of a cell would be written where it is not read again, or cannot be scored."""
    check_one_corpus(cell.recipe.data)
    if not is_cell_name(cell.data, cell.system):
        raise CigeError(
            f"{cell.data}/{cell.system} cannot be the name of a cell, which has letters, digits, _, - and .; change "
            f"`name` in the recipe ({cell.recipe.name}), or the folder of its development sentences ({cell.data})"
        )


def is_done(cell: Cell, results: Iterable[CellResult]) -> bool:
    """Whether the results have this cell with the settings of its recipe."""
    return any(result.path == cell.path and result.settings == cell.settings for result in results)


def cheapest_first(cells: Sequence[Cell], results: Sequence[CellResult], data_dir: str | None) -> list[Cell]:
    """The cells by estimated time; that of a later seed counts as many times as its number, so that a system gets its
    second seed before one that is more than twice as slow gets its first.
    """
    return sorted(cells, key=lambda cell: cell.seed * estimated_seconds(cell, results, data_dir))


def estimated_seconds(cell: Cell, results: Sequence[CellResult], data_dir: str | None) -> float:
    """Seconds of training, if the machine is as fast as that of the results; on an arbitrary scale without results.

    Infinite if the data is not there, so that such cells come last; running one says how to get the data.
    """
    rates: dict[str, list[float]] = {}
    for result in results:
        rates.setdefault(result.system, []).append(result.seconds / result.work)
    medians = {system: statistics.median(of_system) for system, of_system in rates.items()}
    rate = medians.get(cell.system) or (statistics.median(medians.values()) if medians else 1e-4)
    try:
        return rate * cell.work(data_dir)
    except CigeError:
        return math.inf


def share_of(cells: Sequence[Cell], part: int, n_parts: int) -> list[Cell]:
    """The cells of machine `part`, from 1 to `n_parts`: whole recipes, so that each needs few data sets and vectors."""
    names = sorted({cell.recipe.name for cell in cells})
    mine = set(names[part - 1 :: n_parts])
    return [cell for cell in cells if cell.recipe.name in mine]
