"""Which files of a folder are documents. Spark, `datasets` and `cige annotate` write one list as several files.

All visible files are documents, except for .txt files beside others, which are notes, and files that describe the
others. The rows that `cige annotate` rejected are not. Training, development and test data are never read as one list.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from pathlib import Path

from cige.data.text_files import read_text
from cige.errors import DataError
from cige.folders.kinds import ANNOTATION
from cige.folders.manifest import kind_of
from cige.folders.visible import visible_files

_BINARY = (".parquet", ".spacy")
_DESCRIPTIONS = ("dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json", "manifest.json")
_SPLITS = ("train", "training", "dev", "valid", "validation", "val", "eval", "test", "testing")
_NEVER_EMPTY = 100  # bytes; a compressed file has some even if there is nothing in it


def suffix(path: Path) -> str:
    """The suffix of a file name without .gz or .xz, in lower case."""
    return (Path(path.stem).suffix if path.suffix.lower() in (".gz", ".xz") else path.suffix).lower()


def by_suffix(folder: Path, known: Container[str]) -> dict[str, list[Path]]:
    """The documents of a folder, sorted by path, for each of the known suffixes that occur."""
    if kind_of(folder) == ANNOTATION:
        folder = folder / "data"
    files: dict[str, list[Path]] = {}
    for file in visible_files(folder):
        if suffix(file) in known and file.name not in _DESCRIPTIONS:
            files.setdefault(suffix(file), []).append(file)
    if files.keys() - {".txt", ".ann"}:
        files.pop(".txt", None)
    return files


def one_split(folder: Path, files: Sequence[Path]) -> list[Path]:
    """The files that are not empty (the first one if all are), sorted by path.

    Raises:
        DataError: the names say that they belong to several splits, such as train.jsonl and test.jsonl.
    """
    splits: dict[str, Path] = {}
    for file in files:
        for part in file.relative_to(folder).parts:
            split = re.split(r"[._-]", part.lower())[0]
            if split in _SPLITS:
                splits.setdefault(split, file)
    if len(splits) > 1:
        raise DataError(
            f"{folder} has several splits ({', '.join(sorted(splits))}), which are not read as one; "
            f"expected one of them, such as {splits.get('train', min(splits.values()))}"
        )
    return sorted(file for file in files if not _is_empty(file)) or sorted(files)[:1]


def _is_empty(file: Path) -> bool:
    size = file.stat().st_size
    return not size or (size < _NEVER_EMPTY and suffix(file) not in _BINARY and not read_text(file).strip())
