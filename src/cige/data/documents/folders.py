"""Which files of a folder are documents. Spark, `datasets` and `cige annotate` write one list as several files.

All visible files are documents, except for .txt files beside others, which are notes, and files that describe the
others. The rows that `cige annotate` rejected are not. Training, development and test data are never read as one list.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from pathlib import Path

from cige.data.text_files import read_text
from cige.errors import DataError
from cige.folders.kinds import ANNOTATION
from cige.folders.manifest import kind_of

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
    """The files that are not empty (the first one if all are), sorted by path. Raises a DataError if the names say that
    they belong to several splits, such as train.jsonl and test.jsonl."""
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


def visible_files(folder: Path) -> list[Path]:
    """The files of a folder and its subfolders, sorted by path, without those whose name or folder is hidden.

    Names with "_" or "." first are hidden, as in Spark, which writes its own files there. A file has none.
    """
    if not folder.is_dir():
        return []
    return _visible(folder, (file for file in folder.rglob("*") if file.is_file()))


def broken_links(folder: Path) -> list[Path]:
    """The links that `visible_files` leaves out because what they point to is not there."""
    return _visible(folder, (link for link in folder.rglob("*") if link.is_symlink() and not link.exists()))


def _visible(folder: Path, files: Iterable[Path]) -> list[Path]:
    names = (file.relative_to(folder) for file in files)
    return sorted(folder / name for name in names if not any(part.startswith(("_", ".")) for part in name.parts))
