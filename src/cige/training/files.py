"""Files to train on: those that a recipe names, and a user's own."""

from __future__ import annotations

import os
from pathlib import Path

from cige.errors import CigeError, RecipeError
from cige.text.counted import counted


def find_file(path: str, data_dir: str | Path | None = None) -> Path:
    """Resolve a path of a recipe: absolute, in `data_dir` (or $CIGE_DATA), or relative to the working folder."""
    folder = os.environ.get("CIGE_DATA", "") if data_dir is None else data_dir
    candidates = dict.fromkeys((Path(folder) / path, Path(path)))
    for candidate in candidates:
        if candidate.exists():
            return candidate
    raise RecipeError(
        f"{path}: no such file; looked for {' and '.join(map(str, candidates))}. "
        "Paths in a recipe are relative to --data-dir, to CIGE_DATA or to the working folder"
    )


def own_data_settings(data: str | Path, dev: str | Path | None = None) -> dict[str, object]:
    """The settings that make a recipe train on a file; paths are absolute.

    Relative paths in a recipe are searched among the data sets first.

    Args:
        data: labelled sentences to train on, in any format that cige reads.
        dev: labelled sentences for choosing the epoch; None holds out the last tenth of `data`.

    Raises:
        CigeError: `data` cannot be read, or has fewer than two sentences and there is no `dev`.
    """
    settings: dict[str, object] = {"data.dataset": None, "data.train": str(Path(data).absolute())}
    if dev is not None:
        return settings | {"data.dev": str(Path(dev).absolute()), "data.n_held_out": 0}
    from cige.data.reading import read_sentences

    n_sentences = len(read_sentences(data, nested=True))  # they are only counted here
    if n_sentences < 2:
        raise CigeError(
            f"{data}: {counted(n_sentences, 'sentence')}; expected two or more, or a separate file for --dev"
        )
    return settings | {"data.dev": None, "data.n_held_out": max(1, n_sentences // 10)}
