"""Find the files that a recipe names."""

from __future__ import annotations

import os
from pathlib import Path

from cige.errors import RecipeError


def find_file(path: str, data_dir: str | Path | None = None) -> Path:
    """Resolve a path of a recipe: absolute, in `data_dir` (or $CIGE_DATA), or relative to the working folder."""
    folders = [Path(data_dir)] if data_dir is not None else []
    if not folders and os.environ.get("CIGE_DATA"):
        folders.append(Path(os.environ["CIGE_DATA"]))
    candidates = [folder / path for folder in [*folders, Path()]]
    for candidate in candidates:
        if candidate.exists():
            return candidate
    raise RecipeError(
        f"{path}: no such file; looked for {' and '.join(str(c) for c in dict.fromkeys(candidates))}. "
        "Paths in a recipe are relative to --data-dir, to CIGE_DATA or to the working folder"
    )
