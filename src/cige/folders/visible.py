"""The files of a folder that are meant to be read, in a fixed order."""

from collections.abc import Iterable
from pathlib import Path


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
